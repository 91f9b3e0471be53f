import NIOCore

/// Counts events within a window of time, in constant memory.
struct HTTP2RateLimit {
  private let countMax: Int
  private let window: TimeAmount
  private var start: NIODeadline?
  private var count = 0

  /// A limit of `countMax` events in each `window`.
  init(countMax: Int, window: TimeAmount) {
    self.countMax = countMax
    self.window = window
  }

  /// Counts one event and says whether it is still within the limit.
  mutating func admits(at now: NIODeadline) -> Bool {
    if let start, now - start < window {
      count += 1
    } else {
      start = now
      count = 1
    }
    return count <= countMax
  }
}

/// Tells a client that keeps a connection alive from one that only makes work.
///
/// gRPC's own servers do the same: a PING too soon after the previous one, with no reply sent in
/// between, is a strike. After two strikes the connection ends with `too_many_pings`, on which
/// clients slow down.
struct HTTP2PingPolicy {
  static let strikesMax = 2

  private let intervalMin: TimeAmount
  private var last: NIODeadline?
  private var strikes = 0

  /// A policy for PINGs at least `intervalMin` apart.
  init(intervalMin: TimeAmount) {
    self.intervalMin = intervalMin
  }

  /// Counts a PING and says whether the connection may go on.
  mutating func admits(at now: NIODeadline) -> Bool {
    if let last, now - last < intervalMin { strikes += 1 }
    last = now
    return strikes <= Self.strikesMax
  }

  /// Notes that headers, data or a window was sent, to which clients may answer with a PING.
  ///
  /// Clients measure bandwidth by a PING for each burst of data.
  mutating func replied() {
    last = nil
    strikes = 0
  }
}
