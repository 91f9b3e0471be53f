package import Logging
import NIOCore
package import RuntimeSupport
import Synchronization

/// The memory for requests that are still arriving and responses that are still unread, of all
/// connections together.
///
/// What would exceed it is refused. Before that, transfers that have not moved for a second are
/// ended, slowest first, so that nobody keeps the memory by sending or reading nothing.
package final class TransferBudget: Sendable {
  /// Enough for 25 of the largest bodies at a time, and little beside the functions' own memory.
  package static let bytesDefault = 256 << 20
  /// A transfer has moved when so many bytes have passed.
  static let movedBytesMin = 16 << 10

  private struct Entry {
    weak var hold: TransferHold?
  }

  private struct State {
    var holds: [ObjectIdentifier: Entry] = [:]
    var reportTime: NIODeadline?
  }

  package let bytesMax: Int
  private let stallMin: TimeAmount
  private let logger: Logger
  private let held = Atomic(0)
  private let state = Mutex(State())

  /// A budget of `bytesMax` bytes.
  ///
  /// A transfer that has not moved for `stallMin` is ended when others need its memory.
  package init(
    bytesMax: Int = TransferBudget.bytesDefault,
    stallMin: Duration = .seconds(1),
    logger: Logger
  ) {
    self.bytesMax = bytesMax
    self.stallMin = TimeAmount(stallMin)
    self.logger = logger
  }

  /// The bytes that are held now.
  package var heldBytes: Int { held.load(ordering: .relaxed) }

  /// The error for a request or response that does not fit.
  package var error: TransferBudgetError { TransferBudgetError(bytesMax: bytesMax) }

  fileprivate func enter(_ hold: TransferHold) {
    state.withLock { $0.holds[ObjectIdentifier(hold)] = Entry(hold: hold) }
  }

  fileprivate func leave(_ hold: TransferHold) {
    state.withLock { $0.holds[ObjectIdentifier(hold)] = nil }
  }

  fileprivate func release(_ bytes: Int) { held.subtract(bytes, ordering: .relaxed) }

  /// Takes bytes of the budget, if need be from stalled transfers; false when there are too few.
  fileprivate func take(_ bytes: Int) -> Bool {
    if tryTake(bytes) { return true }
    endStalled(for: bytes)
    if tryTake(bytes) { return true }
    report()
    return false
  }

  private func tryTake(_ bytes: Int) -> Bool {
    var present = held.load(ordering: .relaxed)
    while present + bytes <= bytesMax {
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

  /// Ends the transfers that have stalled longest, until so many bytes are free.
  private func endStalled(for bytes: Int) {
    guard bytes <= bytesMax else { return }
    let latest = NIODeadline.now() - stallMin
    let holds = state.withLock { $0.holds.values.compactMap(\.hold) }
    let stalled = holds.compactMap { hold in hold.stalledSince.map { ($0, hold) } }
      .filter { $0.0 <= latest }.sorted { $0.0 < $1.0 }
    for (_, hold) in stalled where heldBytes + bytes > bytesMax { hold.end() }
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

/// The bytes of a budget that one request or response holds; they are given back with the object.
package final class TransferHold: Sendable {
  private struct State {
    var bytes = 0
    var moved = 0
    /// When the client last moved a noticeable part; nil while nothing is the client's to do.
    var movedTime: NIODeadline? = .now()
    var isEnded = false
  }

  package let budget: TransferBudget
  private let state = Mutex(State())
  private let onEnd: @Sendable () -> Void

  /// A hold of no bytes; `onEnd` is called on any thread, at most once, when the budget ends the
  /// transfer.
  package init(_ budget: TransferBudget, onEnd: @escaping @Sendable () -> Void) {
    self.budget = budget
    self.onEnd = onEnd
    budget.enter(self)
  }

  deinit {
    budget.leave(self)
    budget.release(state.withLock { $0.bytes })
  }

  /// Whether the budget has ended the transfer, because it had stalled.
  package var isEnded: Bool { state.withLock { $0.isEnded } }

  /// Holds more bytes; false when the budget is full or has ended the transfer.
  package func add(_ bytes: Int) -> Bool {
    guard !isEnded, budget.take(bytes) else { return false }
    let isKept = state.withLock { state in
      guard !state.isEnded else { return false }
      state.bytes += bytes
      return true
    }
    if !isKept { budget.release(bytes) }
    return isKept
  }

  /// Gives bytes back.
  package func remove(_ bytes: Int) {
    let given = state.withLock { state in
      let given = min(bytes, state.bytes)
      state.bytes -= given
      return given
    }
    budget.release(given)
  }

  /// Holds exactly so many bytes from now on; false when the budget has too few.
  package func set(_ bytes: Int) -> Bool {
    let present = state.withLock { $0.bytes }
    if bytes > present { return add(bytes - present) }
    remove(present - bytes)
    return true
  }

  /// Notes that the client has sent or read so many bytes.
  package func moved(_ bytes: Int) {
    state.withLock { state in
      state.moved += bytes
      guard state.moved >= TransferBudget.movedBytesMin else { return }
      state.moved = 0
      if state.movedTime != nil { state.movedTime = .now() }
    }
  }

  /// Notes that the client has done its part, so the transfer cannot stall any more.
  package func clientIsDone() { state.withLock { $0.movedTime = nil } }

  /// Notes that the client has to do its part from now on, as at the start.
  package func clientIsDue() { state.withLock { $0.movedTime = .now() } }

  /// When the transfer last moved; nil when it holds nothing or is not the client's to move.
  fileprivate var stalledSince: NIODeadline? {
    state.withLock { $0.bytes > 0 ? $0.movedTime : nil }
  }

  /// Gives everything back and ends the transfer.
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

/// The memory for requests and responses under way is full.
package struct TransferBudgetError: StatusConvertible, CustomStringConvertible, Equatable {
  package var bytesMax: Int

  package var statusCode: StatusCode { .unavailable }
  /// The same for gRPC, whose libraries wait longer before they try again than for `UNAVAILABLE`.
  package var exhausted: StatusError { StatusError(.resourceExhausted, statusMessage) }
  package var statusMessage: String {
    "The suite's memory for requests and responses under way is full (\(bytesMax >> 20) MiB on all "
      + "connections together); try again in a moment."
  }
  package var description: String { statusMessage }
}
