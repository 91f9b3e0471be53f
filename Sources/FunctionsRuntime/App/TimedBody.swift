import Invocation
import NIOCore
import Synchronization

/// Writes a streamed body for as long as its function may run.
///
/// When the time is over the function is cancelled and what it writes then is dropped. A callable's
/// stream ends with an event that says so; of any other the connection is cut, so that the client
/// does not take the part for the whole.
struct TimedBody: Sendable {
  let deadline: ContinuousClock.Instant
  /// Nil where no event can tell.
  let lastEvent: ByteBuffer?

  /// Runs the function; throws `InvocationError` when the time is over and no event tells.
  func write(
    with write: @escaping InvocationReply.Body.Write,
    _ produce: @escaping @Sendable (@escaping InvocationReply.Body.Write) async throws -> Void
  ) async throws {
    let gate = Gate(write)
    try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        try await produce { try await gate.write($0) }
        return true
      }
      group.addTask { [deadline] in
        try await Task.sleep(until: deadline, clock: .continuous)
        return false
      }
      defer { group.cancelAll() }
      guard try await group.next() == false else { return }
      gate.close()
      group.cancelAll()
      guard let lastEvent else {
        throw InvocationError(.timedOut, "The function did not finish its reply in time.")
      }
      try await write(lastEvent)
      // What the function makes of its cancellation is of no interest any more.
      while await group.nextResult() != nil {}
    }
  }

  /// Lets writes through until it is closed.
  private final class Gate: Sendable {
    private let next: InvocationReply.Body.Write
    private let isClosed = Atomic(false)

    init(_ next: @escaping InvocationReply.Body.Write) {
      self.next = next
    }

    func close() { isClosed.store(true, ordering: .releasing) }

    func write(_ piece: ByteBuffer) async throws {
      guard !isClosed.load(ordering: .acquiring) else { throw CancellationError() }
      try await next(piece)
    }
  }
}
