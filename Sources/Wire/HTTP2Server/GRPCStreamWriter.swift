import HTTPSupport
import NIOCore
import RuntimeSupport
import Synchronization

/// The path of framed replies from a handler's task to its stream, which a slow client blocks.
///
/// Replies are queued under a lock and written by the event loop in one go, so a quick handler
/// costs one wake-up for many replies.
final class GRPCStreamWriter: Sendable {
  /// The bytes of replies that wait here before `send` waits.
  ///
  /// A few HTTP/2 frames: more would only delay replies, without raising the throughput.
  private static let queuedBytesMax = 64 * 1024

  private let queue = Mutex(GRPCSendQueue(bytesMax: queuedBytesMax))
  private let wake: @Sendable () -> Void
  private let budget: TransferBudget?
  /// Counts what the handler keeps for further replies.
  private let hold = Mutex<TransferHold?>(nil)

  /// A writer that calls `wake` when there is something to take.
  ///
  /// What handlers keep is counted in `budget`; nil does not bound it.
  init(budget: TransferBudget? = nil, wake: @escaping @Sendable () -> Void) {
    self.wake = wake
    self.budget = budget
  }

  /// Holds exactly so many bytes that the handler keeps while the client is slow.
  ///
  /// Throws `RESOURCE_EXHAUSTED` when the budget has too few. A call whose client takes nothing
  /// while others need its memory ends with the same.
  func hold(_ bytes: Int) throws(StatusError) {
    guard let budget else { return }
    guard bytes > 0 else { return hold.withLock { $0 = nil } }
    let present = hold.withLock { hold in
      let present = hold ?? makeHold(budget)
      hold = present
      return present
    }
    guard present.set(bytes) else { throw budget.error.exhausted }
  }

  private func makeHold(_ budget: TransferBudget) -> TransferHold {
    let hold = TransferHold(budget) { [weak self] in self?.close(budget.error.exhausted) }
    // The handler works; only a wait for room is the client's.
    hold.clientIsDone()
    return hold
  }

  /// Queues a framed reply and waits while the client has no room.
  func send(_ frame: ByteBuffer) async throws {
    try Task.checkCancellation()
    let (isFirst, mustWait) = try queue.withLock { queue in
      (try queue.append(frame), queue.mustWait)
    }
    if isFirst { wake() }
    if mustWait { try await waitForRoom() }
  }

  private func waitForRoom() async throws {
    let hold = hold.withLock(\.self)
    hold?.clientIsDue()
    defer { hold?.clientIsDone() }
    let ticket = queue.withLock { $0.makeTicket() }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let outcome = queue.withLock { $0.wait(ticket, continuation) }
        // The task was cancelled before the ticket was in the queue: nobody else will resume it.
        if outcome == .waiting {
          if Task.isCancelled { cancel(ticket) }
        } else if outcome == .hasRoom {
          continuation.resume()
        } else {
          continuation.resume(throwing: queue.withLock(\.closure))
        }
      }
    } onCancel: {
      cancel(ticket)
    }
  }

  private func cancel(_ ticket: Int) {
    queue.withLock { $0.cancel(ticket) }?.resume(throwing: CancellationError())
  }

  /// Takes all queued replies; call it on the event loop.
  func take() -> [ByteBuffer] {
    queue.withLock { $0.take() }
  }

  /// Says whether the stream has room, and resumes the waiting senders when it has.
  func setWritable(_ isWritable: Bool) {
    let waiting = queue.withLock { $0.setWritable(isWritable) }
    for continuation in waiting { continuation.resume() }
  }

  /// Ends the writer with its call: queued replies are dropped and waiting senders are told.
  func close(_ reason: any Error = CancellationError()) {
    let waiting = queue.withLock { $0.close(reason) }
    for continuation in waiting { continuation.resume(throwing: reason) }
    hold.withLock { $0 = nil }
  }
}

/// The queue of a writer, without its lock.
struct GRPCSendQueue {
  typealias Continuation = CheckedContinuation<Void, any Error>

  private let bytesMax: Int
  private var frames: [ByteBuffer] = []
  private var bytes = 0
  private var isWritable = true
  private var isClosed = false
  /// The error that senders get after the end.
  private(set) var closure: any Error = CancellationError()
  private var waiting: [Int: Continuation] = [:]
  private var ticketLast = 0

  /// An empty queue of a writable stream.
  init(bytesMax: Int) {
    self.bytesMax = bytesMax
  }

  /// The outcome of an attempt to wait.
  enum Outcome {
    case waiting
    case hasRoom
    case closed
  }

  /// Queues a frame and says whether it is the first since the last `take`; throws when closed.
  mutating func append(_ frame: ByteBuffer) throws -> Bool {
    guard !isClosed else { throw closure }
    frames.append(frame)
    bytes += frame.readableBytes
    return frames.count == 1
  }

  /// Whether a sender has to wait now.
  var mustWait: Bool { !isClosed && (!isWritable || bytes >= bytesMax) }

  /// A name for one wait.
  mutating func makeTicket() -> Int {
    ticketLast += 1
    return ticketLast
  }

  /// Puts a continuation into the queue, unless there is nothing to wait for.
  mutating func wait(_ ticket: Int, _ continuation: Continuation) -> Outcome {
    if isClosed { return .closed }
    guard mustWait else { return .hasRoom }
    waiting[ticket] = continuation
    return .waiting
  }

  /// Takes a continuation out, if it is still there.
  mutating func cancel(_ ticket: Int) -> Continuation? {
    waiting.removeValue(forKey: ticket)
  }

  /// All frames, in order.
  mutating func take() -> [ByteBuffer] {
    defer {
      frames.removeAll(keepingCapacity: true)
      bytes = 0
    }
    return frames
  }

  /// Notes whether the stream has room; returns the senders that may go on.
  mutating func setWritable(_ isWritable: Bool) -> [Continuation] {
    self.isWritable = isWritable
    guard !mustWait else { return [] }
    return removeWaiting()
  }

  /// Drops everything; returns the senders to tell.
  mutating func close(_ reason: any Error = CancellationError()) -> [Continuation] {
    if !isClosed { closure = reason }
    isClosed = true
    _ = take()
    return removeWaiting()
  }

  private mutating func removeWaiting() -> [Continuation] {
    guard !waiting.isEmpty else { return [] }
    defer { waiting = [:] }
    return Array(waiting.values)
  }
}
