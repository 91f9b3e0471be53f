import Invocation
import NIOCore
import Synchronization

/// Writes a streamed body for as long as its function may run.
///
/// When the time is over, the function is cancelled and its further output is dropped. A callable's
/// stream ends with an event that says so. For any other stream the connection is cut, so that the
/// client does not take the part for the whole.
struct TimedBody: Sendable {
  let deadline: ContinuousClock.Instant
  /// The event that reports the end of the time; nil when the stream has no events.
  let lastEvent: ByteBuffer?

  /// Runs the function; throws `InvocationError` when the time is over and no event reports it.
  func write(
    with write: @escaping InvocationReply.Body.Write,
    _ produce: @escaping @Sendable (@escaping InvocationReply.Body.Write) async throws -> Void
  ) async throws {
    let gate = Gate(write)
    let (ends, end) = AsyncThrowingStream.makeStream(of: Bool.self)
    // These tasks are not children, for which this would wait: a function that ignores cancellation
    // is left alone. Both tasks end with the function, or are cancelled below.
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
