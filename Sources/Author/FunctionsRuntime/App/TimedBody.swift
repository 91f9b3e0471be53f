import HTTPMessages
import Invocation
import NIOCore
import Synchronization

/// A streamed body that is written until its function exceeds its time limit.
///
/// At the deadline the function is cancelled and its further output is dropped. The stream of a
/// callable then ends with an event that reports the timeout. Any other stream is cut off by
/// closing the connection, so that the client does not mistake the partial body for the whole.
struct TimedBody: Sendable {
  let deadline: ContinuousClock.Instant
  /// The event that reports the timeout; nil if the stream does not consist of events.
  let lastEvent: ByteBuffer?

  /// Runs the function; throws `InvocationError` on a timeout that no event can report.
  func write(
    with write: @escaping Response.Body.Write,
    _ produce: @escaping @Sendable (@escaping Response.Body.Write) async throws -> Void
  ) async throws {
    let gate = Gate(write)
    let (ends, end) = AsyncThrowingStream.makeStream(
      of: Bool.self,
      // The first of the two ends counts.
      bufferingPolicy: .bufferingOldest(1)
    )
    // These tasks are unstructured, because a task group would wait for a function that ignores
    // cancellation. Both tasks end with the function or are cancelled below.
    let function = Task {
      do {
        try await produce { try await gate.write($0) }
        end.yield(true)
      } catch {
        end.finish(throwing: error)
      }
    }
    let timer = Task { [deadline] in
      try await Task.sleep(until: deadline, clock: .continuous)
      end.yield(false)
    }
    defer {
      function.cancel()
      timer.cancel()
    }
    let isWhole = try await withTaskCancellationHandler {
      for try await isWhole in ends { return isWhole }
      throw CancellationError()
    } onCancel: {
      function.cancel()
    }
    guard !isWhole else { return }
    gate.close()
    guard let lastEvent else {
      throw InvocationError(.timedOut, "The function did not finish its reply in time.")
    }
    try await write(lastEvent)
  }

  /// A gate that passes writes on until it is closed.
  private final class Gate: Sendable {
    private let next: Response.Body.Write
    private let isClosed = Atomic(false)

    init(_ next: @escaping Response.Body.Write) {
      self.next = next
    }

    func close() { isClosed.store(true, ordering: .releasing) }

    func write(_ piece: ByteBuffer) async throws {
      guard !isClosed.load(ordering: .acquiring) else { throw CancellationError() }
      try await next(piece)
    }
  }
}
