import HTTPSupport
import NIOCore
import StatusCodes
import Synchronization

/// The path of framed replies from a handler's task to its stream; a slow client makes it block.
///
/// Replies are queued under a lock and written together by the event loop. A fast handler therefore
/// costs one wake-up for many replies.
final class GRPCStreamWriter: Sendable {
  /// The number of queued bytes at which `send` begins to wait.
  ///
  /// It equals a few HTTP/2 frames; more would only delay replies without increasing throughput.
  private static let queuedBytesMax = 64 * 1024

  private let queue = Mutex(GRPCSendQueue(bytesMax: queuedBytesMax))
  private let wake: @Sendable () -> Void
  private let budget: TransferBudget?
  /// The hold for the memory that the handler keeps for further replies.
  private let hold = Mutex<TransferHold?>(nil)

  /// Creates a writer that calls `wake` when replies are available to `take`.
  ///
  /// `budget` counts the memory that handlers hold; nil does not limit it.
  init(budget: TransferBudget? = nil, wake: @escaping @Sendable () -> Void) {
    self.wake = wake
    self.budget = budget
  }

  /// Sets the number of bytes that the handler holds while the client is slow.
  ///
  /// Throws `RESOURCE_EXHAUSTED` if the budget does not have enough. If the client reads nothing
  /// and other transfers need the memory, the call ends with the same status.
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
    let hold = TransferHold(budget, isForResults: true) { [weak self] in
      self?.close(budget.error.exhausted)
    }
    // The handler is working; the client has to act only while the handler waits for room.
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
        // The task was cancelled before the ticket was queued, so `onCancel` did not resume it.
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

  /// Takes all queued replies; must be called on the event loop.
  func take() -> [ByteBuffer] {
    queue.withLock { $0.take() }
  }

  /// Records whether the stream has room; if so, resumes the waiting senders.
  func setWritable(_ isWritable: Bool) {
    let waiting = queue.withLock { $0.setWritable(isWritable) }
    for continuation in waiting { continuation.resume() }
  }

  /// Closes the writer at the end of its call: drops queued replies and fails waiting senders.
  func close(_ reason: any Error = CancellationError()) {
    let waiting = queue.withLock { $0.close(reason) }
    for continuation in waiting { continuation.resume(throwing: reason) }
    hold.withLock { $0 = nil }
  }
}

/// The state of a writer's queue, without its lock.
struct GRPCSendQueue {
  typealias Continuation = CheckedContinuation<Void, any Error>

  private let bytesMax: Int
  private var frames: [ByteBuffer] = []
  private var bytes = 0
  private var isWritable = true
  private var isClosed = false
  /// The error for senders after the queue is closed.
  private(set) var closure: any Error = CancellationError()
  private var waiting: [Int: Continuation] = [:]
  private var ticketLast = 0

  /// Creates an empty queue for a writable stream.
  init(bytesMax: Int) {
    self.bytesMax = bytesMax
  }

  /// The result of an attempt to wait.
  enum Outcome {
    case waiting
    case hasRoom
    case closed
  }

  /// Queues a frame and returns true if it is the first since the last `take`.
  ///
  /// Throws if the queue is closed.
  mutating func append(_ frame: ByteBuffer) throws -> Bool {
    guard !isClosed else { throw closure }
    frames.append(frame)
    bytes += frame.readableBytes
    return frames.count == 1
  }

  /// True if a sender has to wait at present.
  var mustWait: Bool { !isClosed && (!isWritable || bytes >= bytesMax) }

  /// Returns a new id for a wait.
  mutating func makeTicket() -> Int {
    ticketLast += 1
    return ticketLast
  }

  /// Adds a waiting continuation, unless there is no need to wait.
  mutating func wait(_ ticket: Int, _ continuation: Continuation) -> Outcome {
    if isClosed { return .closed }
    guard mustWait else { return .hasRoom }
    waiting[ticket] = continuation
    return .waiting
  }

  /// Removes and returns a continuation that is still waiting.
  mutating func cancel(_ ticket: Int) -> Continuation? {
    waiting.removeValue(forKey: ticket)
  }

  /// Removes and returns all frames, in order.
  mutating func take() -> [ByteBuffer] {
    defer {
      frames.removeAll(keepingCapacity: true)
      bytes = 0
    }
    return frames
  }

  /// Records whether the stream has room; returns the senders that may continue.
  mutating func setWritable(_ isWritable: Bool) -> [Continuation] {
    self.isWritable = isWritable
    guard !mustWait else { return [] }
    return removeWaiting()
  }

  /// Drops all frames and closes the queue; returns the senders to fail.
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
