package import HTTPMessages
package import NIOCore

/// The contract for running functions, between senders of requests and owners of workers.
///
/// The senders are the gateway and trigger delivery.
package protocol FunctionInvoker: Sendable {
  /// Sends one request to a worker of the function and returns its reply.
  ///
  /// Waits for a free worker and starts one if necessary. The function's `timeoutSeconds`, or a
  /// shorter `request.timeout`, limits the run from the moment a worker receives the request. When
  /// the limit is exceeded, the error is `.timedOut`. A wait of that length for a worker also ends
  /// with `.timedOut`.
  ///
  /// Requests that the server itself sends for events, schedules and tasks wait as long as the
  /// owner of the workers decides. Their wait ends with `.overloaded`: the request never ran and
  /// may be sent again. If there is no place for another worker, the wait is shorter and the error
  /// is `.placesTaken`.
  ///
  /// Returns once the head of the reply has arrived; the deadline also applies to the body.
  /// Cancelling the task, or dropping the body unread, ends the invocation.
  ///
  /// Throws `InvocationError`. Any status that the function itself responds with is a reply, not an
  /// error.
  func invoke(_ request: InvocationRequest) async throws -> Response

  /// Starts an invocation as `invoke` does, but without a task.
  ///
  /// `completion` is called once, on any thread, possibly before this method returns. `eventLoop`
  /// is the event loop on which the caller would like `completion` to run. Returns a closure that
  /// ends the invocation, for use when the caller disconnects. The call itself must not block.
  func begin(
    _ request: InvocationRequest,
    near eventLoop: any EventLoop,
    completion: @escaping @Sendable (Result<Response, any Error>) -> Void
  ) -> @Sendable () -> Void
}

extension FunctionInvoker {
  package func begin(
    _ request: InvocationRequest,
    near eventLoop: any EventLoop,
    completion: @escaping @Sendable (Result<Response, any Error>) -> Void
  ) -> @Sendable () -> Void {
    // The caller controls the task: it either cancels it or waits for its completion.
    let task = Task {
      do {
        completion(.success(try await invoke(request)))
      } catch {
        completion(.failure(error))
      }
    }
    return { task.cancel() }
  }
}
