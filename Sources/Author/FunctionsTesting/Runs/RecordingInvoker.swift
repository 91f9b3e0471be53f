import FunctionsRuntime
import HTTPMessages
import HTTPTypes
import Invocation
import Manifests
import NIOCore

/// An invoker that runs functions in this process as workers do, and records the runs.
struct RecordingInvoker: FunctionInvoker {
  let host: FunctionHost
  /// The time limit of each function that sets one.
  let timeouts: [String: Duration]
  let recorder: RunRecorder
  /// The runs that deliveries have begun, which the suite awaits at its end.
  let begun = BegunTasks()

  func begin(
    _ request: InvocationRequest,
    near eventLoop: any EventLoop,
    completion: @escaping @Sendable (Result<Response, any Error>) -> Void
  ) -> @Sendable () -> Void {
    begun.begin {
      do {
        completion(.success(try await invoke(request)))
      } catch {
        completion(.failure(error))
      }
    }
  }

  func invoke(_ request: InvocationRequest) async throws -> Response {
    recorder.began(request)
    do {
      var reply = try await bounded(request)
      guard reply.head.status.kind != .successful else {
        recorder.ended(request, .succeeded)
        return reply
      }
      let body = try await reply.body.collect(upTo: FunctionLimits.bodyBytesMax)
      reply.body = .whole(body)
      let error = recorder.error(loggedBy: request.id) ?? String(buffer: body)
      recorder.ended(request, .failed(error))
      return reply
    } catch {
      recorder.ended(request, .failed("\(error)"))
      throw error
    }
  }

  /// Runs a function with its time limit.
  ///
  /// At the limit the function is cancelled, as in a worker.
  /// A function that ignores cancellation cannot be terminated inside the test's process, so the
  /// suite waits for it.
  private func bounded(_ request: InvocationRequest) async throws -> Response {
    let own = timeouts[request.function] ?? .seconds(FunctionLimits.secondsDefault)
    let timeout = request.timeout.map { min($0, own) } ?? own
    return try await withThrowingTaskGroup(of: Response?.self) { group in
      group.addTask { try await host.invoke(request) }
      group.addTask {
        try await Task.sleep(for: timeout)
        return nil
      }
      defer { group.cancelAll() }
      let first = try await group.next()
      // A response that a function returns because its test was cancelled is not an outcome of the
      // run.
      try Task.checkCancellation()
      guard let reply = first ?? nil else {
        throw InvocationError(
          .timedOut,
          "\(request.function) did not finish within \(timeout) (\(request.id))."
        )
      }
      return reply
    }
  }
}
