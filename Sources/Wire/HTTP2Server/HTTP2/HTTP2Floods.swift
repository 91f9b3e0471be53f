import NIOCore

/// A limit on the number of events within a time window, in constant memory.
struct HTTP2RateLimit {
  private let countMax: Int
  private let window: TimeAmount
  private var start: NIODeadline?
  private var count = 0

  /// Creates a limit of `countMax` events in each `window`.
  init(countMax: Int, window: TimeAmount) {
    self.countMax = countMax
    self.window = window
  }

  /// Counts an event; returns true if it is still within the limit.
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

/// A policy that separates keep-alive PINGs from a flood of PINGs.
///
/// It is the policy of gRPC's own servers: a PING too soon after the previous one, with no reply
/// sent in between, is a strike. After two strikes the connection ends with `too_many_pings`, which
/// makes clients slow down.
struct HTTP2PingPolicy {
  static let strikesMax = 2

  private let intervalMin: TimeAmount
  private var last: NIODeadline?
  private var strikes = 0

  /// Creates a policy for PINGs at least `intervalMin` apart.
  init(intervalMin: TimeAmount) {
    self.intervalMin = intervalMin
  }

  /// Counts a PING; returns true if the connection may continue.
  mutating func admits(at now: NIODeadline) -> Bool {
    if let last, now - last < intervalMin { strikes += 1 }
    last = now
    return strikes <= Self.strikesMax
  }

  /// Records that headers, data or a window update was sent, after which clients may send a PING.
  ///
  /// Clients measure bandwidth with a PING for each burst of data.
  mutating func replied() {
    last = nil
    strikes = 0
  }
}
