package import Logging
import NIOCore
package import StatusCodes
import Synchronization

/// A budget for the memory of incoming requests and unread responses on all connections together.
///
/// A request or response that would exceed the budget is refused. Before that, transfers that have
/// not progressed for a second are ended, longest stalled first. Clients therefore cannot hold the
/// memory by sending or reading nothing.
package final class TransferBudget: Sendable {
  /// The default budget: enough for 25 of the largest bodies at a time.
  ///
  /// It is small compared with the memory of the functions.
  package static let bytesDefault = 256 << 20
  /// The number of bytes after which a transfer counts as having progressed.
  static let movedBytesMin = 16 << 10

  private struct Entry {
    weak var hold: TransferHold?
  }

  private struct State {
    var holds: [ObjectIdentifier: Entry] = [:]
    var reportTime: NIODeadline?
  }

  package let bytesMax: Int
  /// The number of held bytes up to which results may take more, so that requests have room.
  fileprivate var bytesMaxForResults: Int { bytesMax / 4 * 3 }
  private let stallMin: TimeAmount
  private let logger: Logger
  private let held = Atomic(0)
  private let state = Mutex(State())

  /// Creates a budget of `bytesMax` bytes.
  ///
  /// A transfer that has not progressed for `stallMin` is ended when another transfer needs its
  /// memory.
  package init(
    bytesMax: Int = TransferBudget.bytesDefault,
    stallMin: Duration = .seconds(1),
    logger: Logger
  ) {
    self.bytesMax = bytesMax
    self.stallMin = TimeAmount(stallMin)
    self.logger = logger
  }

  /// The number of bytes held at present.
  package var heldBytes: Int { held.load(ordering: .relaxed) }

  /// The error for a request or response that does not fit in the budget.
  package var error: TransferBudgetError { TransferBudgetError(bytesMax: bytesMax) }

  fileprivate func enter(_ hold: TransferHold) {
    state.withLock { $0.holds[ObjectIdentifier(hold)] = Entry(hold: hold) }
  }

  fileprivate func leave(_ hold: TransferHold) {
    state.withLock { $0.holds[ObjectIdentifier(hold)] = nil }
  }

  fileprivate func release(_ bytes: Int) { held.subtract(bytes, ordering: .relaxed) }

  /// Takes bytes from the budget and ends stalled transfers if needed.
  ///
  /// Returns false if there are still not enough bytes.
  fileprivate func take(_ bytes: Int, upTo limit: Int) -> Bool {
    if tryTake(bytes, upTo: limit) { return true }
    endStalled(for: bytes, upTo: limit)
    if tryTake(bytes, upTo: limit) { return true }
    report()
    return false
  }

  private func tryTake(_ bytes: Int, upTo limit: Int) -> Bool {
    var present = held.load(ordering: .relaxed)
    while present + bytes <= limit {
      let outcome = held.weakCompareExchange(
        expected: present,
        desired: present + bytes,
        ordering: .relaxed
      )
      if outcome.exchanged { return true }
      present = outcome.original
    }
    return false
  }

  /// Ends the transfers that have stalled longest, until `bytes` bytes are free.
  private func endStalled(for bytes: Int, upTo limit: Int) {
    guard bytes <= limit else { return }
    let latest = NIODeadline.now() - stallMin
    let holds = state.withLock { $0.holds.values.compactMap(\.hold) }
    let stalled = holds.compactMap { hold in hold.stalledSince.map { ($0, hold) } }
      .filter { $0.0 <= latest }.sorted { $0.0 < $1.0 }
    for (_, hold) in stalled where heldBytes + bytes > limit { hold.end() }
  }

  private func report() {
    let isDue = state.withLock { state in
      let now = NIODeadline.now()
      guard state.reportTime.map({ now - $0 > Self.reportInterval }) ?? true else { return false }
      state.reportTime = now
      return true
    }
    guard isDue else { return }
    logger.warning(
      "The memory for requests and responses under way is full: further ones are refused",
      metadata: ["transfers.bytes.max": "\(bytesMax)"]
    )
  }

  private static let reportInterval = TimeAmount.seconds(30)
}

/// The bytes that one request or response holds of a budget; they are returned on deinit.
package final class TransferHold: Sendable {
  private struct State {
    var bytes = 0
    var moved = 0
    /// The time of the client's last noticeable progress; nil while the client has nothing to do.
    var movedTime: NIODeadline? = .now()
    var isEnded = false
  }

  package let budget: TransferBudget
  private let limit: Int
  private let state = Mutex(State())
  private let onEnd: @Sendable () -> Void

  /// Creates a hold of no bytes.
  ///
  /// `onEnd` is called on any thread, at most once, if the budget ends the transfer. Results that
  /// wait for slow clients leave a quarter of the budget to everything else.
  package init(
    _ budget: TransferBudget,
    isForResults: Bool = false,
    onEnd: @escaping @Sendable () -> Void
  ) {
    self.budget = budget
    self.onEnd = onEnd
    limit = isForResults ? budget.bytesMaxForResults : budget.bytesMax
    budget.enter(self)
  }

  deinit {
    budget.leave(self)
    budget.release(state.withLock { $0.bytes })
  }

  /// True if the budget has ended the transfer because it had stalled.
  package var isEnded: Bool { state.withLock { $0.isEnded } }

  /// Holds more bytes; false if the budget is full or has ended the transfer.
  package func add(_ bytes: Int) -> Bool {
    guard !isEnded, budget.take(bytes, upTo: limit) else { return false }
    let isKept = state.withLock { state in
      guard !state.isEnded else { return false }
      state.bytes += bytes
      return true
    }
    if !isKept { budget.release(bytes) }
    return isKept
  }

  /// Returns bytes to the budget.
  package func remove(_ bytes: Int) {
    let given = state.withLock { state in
      let given = min(bytes, state.bytes)
      state.bytes -= given
      return given
    }
    budget.release(given)
  }

  /// Sets the number of bytes held; false if the budget does not have enough.
  package func set(_ bytes: Int) -> Bool {
    let present = state.withLock { $0.bytes }
    if bytes > present { return add(bytes - present) }
    remove(present - bytes)
    return true
  }

  /// Records that the client has sent or read a number of bytes.
  package func moved(_ bytes: Int) {
    state.withLock { state in
      state.moved += bytes
      guard state.moved >= TransferBudget.movedBytesMin else { return }
      state.moved = 0
      if state.movedTime != nil { state.movedTime = .now() }
    }
  }

  /// Records that the client has done its part, so that the transfer no longer counts as stalled.
  package func clientIsDone() { state.withLock { $0.movedTime = nil } }

  /// Records that the client has to act from now on, as it does at the start.
  package func clientIsDue() { state.withLock { $0.movedTime = .now() } }

  /// The time of the last progress; nil if nothing is held or the client has nothing to do.
  fileprivate var stalledSince: NIODeadline? {
    state.withLock { $0.bytes > 0 ? $0.movedTime : nil }
  }

  /// Returns all bytes to the budget and ends the transfer.
  fileprivate func end() {
    let given: Int? = state.withLock { state in
      guard !state.isEnded else { return nil }
      state.isEnded = true
      defer { state.bytes = 0 }
      return state.bytes
    }
    guard let given else { return }
    budget.release(given)
    onEnd()
  }
}

/// An error for a transfer that does not fit in the memory for requests and responses.
package struct TransferBudgetError: StatusConvertible, CustomStringConvertible, Equatable {
  package var bytesMax: Int

  package var statusCode: StatusCode { .unavailable }
  /// The error for gRPC, whose clients wait longer to retry it than they do for `UNAVAILABLE`.
  package var exhausted: StatusError { StatusError(.resourceExhausted, statusMessage) }
  package var statusMessage: String {
    "The suite's memory for requests and responses under way is full (\(bytesMax >> 20) MiB on all "
      + "connections together); try again in a moment."
  }
  package var description: String { statusMessage }
}
