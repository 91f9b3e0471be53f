import HTTPMessages
import HTTPTypes
import Invocation
import NIOCore
import Synchronization

/// One invocation on its way from the caller to a worker's connection.
///
/// The first of these events ends it: the response, the deadline, the exit of the worker, or the
/// departure of the caller. Later events are ignored.
final class WorkerInvocation: Sendable {
  private enum Phase {
    case new
    case waiting(Completion)
    case streaming(ResponseStream)
    case over
  }

  private struct State {
    var phase = Phase.new
    var connection: WorkerConnection?
    /// The status of a response whose body is still being streamed.
    var status = 0
    var leave: (version: FunctionVersion, number: FunctionScheduler.InvocationID)?
  }

  /// Receives the outcome of an invocation, once, on any thread.
  typealias Completion = @Sendable (Result<Response, any Error>) -> Void

  let request: InvocationRequest
  /// The caller's event loop; a connection on the same loop is the fastest.
  let eventLoop: (any EventLoop)?
  private let began = NIODeadline.now()
  private let state = Mutex(State())

  /// Creates an invocation that is not yet assigned to a function version.
  init(_ request: InvocationRequest, near eventLoop: (any EventLoop)? = nil) {
    self.request = request
    self.eventLoop = eventLoop
  }

  /// True if no caller is waiting for the response anymore.
  var isOver: Bool {
    state.withLock { if case .over = $0.phase { true } else { false } }
  }

  /// True if a connection carries the invocation.
  var isCarried: Bool { state.withLock { $0.connection != nil } }

  /// True once the caller has the head of a response whose body is still being streamed.
  var isStreaming: Bool {
    state.withLock { if case .streaming = $0.phase { true } else { false } }
  }

  /// The number that the function version has assigned to the invocation.
  var number: FunctionScheduler.InvocationID? { state.withLock { $0.leave?.number } }

  /// Stores the completion to call; returns false if the caller has already left.
  func begin(_ completion: @escaping Completion) -> Bool {
    state.withLock { state in
      guard case .new = state.phase else { return false }
      state.phase = .waiting(completion)
      return true
    }
  }

  /// Stores the version to notify when the caller leaves; returns false if it has already left.
  func assign(_ version: FunctionVersion, _ number: FunctionScheduler.InvocationID) -> Bool {
    state.withLock { state in
      if case .over = state.phase { return false }
      state.leave = (version, number)
      return true
    }
  }

  /// Records the connection before the request is written.
  ///
  /// Returns false if no caller is waiting for the response anymore.
  func started(on connection: WorkerConnection) -> Bool {
    state.withLock { state in
      if case .over = state.phase { return false }
      state.connection = connection
      return true
    }
  }

  /// Delivers a complete response.
  func deliver(_ head: HTTPResponse, _ body: ByteBuffer) {
    let completion = state.withLock { state -> Completion? in
      guard case .waiting(let completion) = state.phase else { return nil }
      state.phase = .over
      state.connection = nil
      return completion
    }
    guard let completion else { return }
    ended(.init(status: head.status.code), status: head.status.code)
    completion(.success(Response(head: head, body: .whole(body))))
  }

  /// Delivers the head of a response whose body follows in `stream`.
  func deliver(_ head: HTTPResponse, _ stream: ResponseStream) {
    let completion = state.withLock { state -> Completion? in
      guard case .waiting(let completion) = state.phase else { return nil }
      state.phase = .streaming(stream)
      state.status = head.status.code
      return completion
    }
    guard let completion else { return }
    let reader = Reader(invocation: self, stream: stream)
    let body = AsyncThrowingStream { try await reader.stream.next() }
    completion(.success(Response(head: head, body: .stream(body))))
  }

  /// Ends the invocation after its streamed body.
  func finish() { conclude(.success(())) }

  /// Ends the invocation without a response, or with an incomplete one.
  func fail(_ error: any Error) { conclude(.failure(error)) }

  /// Ends the invocation because its worker has crashed.
  ///
  /// The worker may have sent pieces of the response, or all of it, that its connection has not
  /// read yet. They are delivered first. If the response is incomplete, `report` is called before
  /// the caller gets the error.
  func workerCrashed(_ error: any Error, report: @escaping @Sendable () -> Void) {
    let end: @Sendable () -> Void = {
      if !self.isOver { report() }
      self.fail(error)
    }
    guard let connection = state.withLock({ $0.connection }) else { return end() }
    connection.endAfterReading(self, end)
  }

  /// Ends the invocation because the caller has left or its request is incomplete.
  ///
  /// Also notifies the version that the invocation is assigned to.
  func abandon(_ error: any Error = CancellationError()) {
    let leave = state.withLock { state -> (FunctionVersion, FunctionScheduler.InvocationID)? in
      if case .over = state.phase { return nil }
      return state.leave
    }
    conclude(.failure(error))
    if let leave { leave.0.cancelled(leave.1) }
  }

  /// Signals the worker that the caller has left.
  func cancelOnConnection() {
    let connection = state.withLock { state in
      defer { state.connection = nil }
      return state.connection
    }
    connection?.cancel(self)
  }

  private func ended(_ outcome: FunctionFigures.Outcome, status: Int? = nil) {
    let time = NIODeadline.now() - began
    state.withLock { $0.leave?.version }?
      .invocationEnded(request, outcome, status: status, after: .nanoseconds(time.nanoseconds))
  }

  private func conclude(_ result: Result<Void, any Error>) {
    let before = state.withLock { state in
      defer { state.phase = .over }
      return state.phase
    }
    switch (before, result) {
    case (.waiting, .failure(let error)), (.streaming, .failure(let error)): ended(.init(error))
    case (.streaming, .success):
      let status = state.withLock { $0.status }
      ended(.init(status: status), status: status)
    default: break
    }
    switch before {
    case .waiting(let completion):
      if case .failure(let error) = result { completion(.failure(error)) }
    case .streaming(let stream): stream.finish(result)
    case .new, .over: break
    }
  }

  /// The lifetime of a streamed body's reader: dropping the body unread ends the invocation.
  private final class Reader: Sendable {
    let invocation: WorkerInvocation
    let stream: ResponseStream

    init(invocation: WorkerInvocation, stream: ResponseStream) {
      self.invocation = invocation
      self.stream = stream
    }

    deinit { invocation.abandon() }
  }
}
