import HTTPTypes
import Invocation
import NIOCore
import Synchronization

/// One request and its one reply, from the caller to the worker's connection.
///
/// The first of these concludes it: the reply, the deadline, the worker's death, or the caller
/// leaving. Later news is ignored.
final class WorkerCall: Sendable {
  private enum Phase {
    case new
    case waiting(Completion)
    case streaming(ReplyStream)
    case over
  }

  private struct State {
    var phase = Phase.new
    var connection: WorkerConnection?
    /// The status of a reply whose body is under way.
    var status = 0
    var leave: (version: FunctionVersion, number: FunctionScheduler.InvocationID)?
  }

  /// Gets the outcome of an exchange, once, on any thread.
  typealias Completion = @Sendable (Result<InvocationReply, any Error>) -> Void

  let request: InvocationRequest
  /// The caller's event loop; a connection on the same loop is the quickest.
  let eventLoop: (any EventLoop)?
  private let began = NIODeadline.now()
  private let state = Mutex(State())

  /// An exchange that no version has taken on yet.
  init(_ request: InvocationRequest, near eventLoop: (any EventLoop)? = nil) {
    self.request = request
    self.eventLoop = eventLoop
  }

  /// Whether nobody waits for the reply any more.
  var isOver: Bool {
    state.withLock { if case .over = $0.phase { true } else { false } }
  }

  /// Whether a connection carries the exchange.
  var isCarried: Bool { state.withLock { $0.connection != nil } }

  /// The number that the exchange's version has given it.
  var number: FunctionScheduler.InvocationID? { state.withLock { $0.leave?.number } }

  /// Keeps the completion to call; false when the caller has already gone.
  func begin(_ completion: @escaping Completion) -> Bool {
    state.withLock { state in
      guard case .new = state.phase else { return false }
      state.phase = .waiting(completion)
      return true
    }
  }

  /// Notes the version to tell when the caller leaves; false when the caller has already left.
  func assign(_ version: FunctionVersion, _ number: FunctionScheduler.InvocationID) -> Bool {
    state.withLock { state in
      if case .over = state.phase { return false }
      state.leave = (version, number)
      return true
    }
  }

  /// Notes that the request is about to be written; false when nobody waits for the reply any more.
  func started(on connection: WorkerConnection) -> Bool {
    state.withLock { state in
      if case .over = state.phase { return false }
      state.connection = connection
      return true
    }
  }

  /// Hands over a whole reply.
  func deliver(_ head: HTTPResponse, _ body: ByteBuffer) {
    let completion = state.withLock { state -> Completion? in
      guard case .waiting(let completion) = state.phase else { return nil }
      state.phase = .over
      state.connection = nil
      return completion
    }
    guard let completion else { return }
    ended(.init(status: head.status.code))
    completion(.success(InvocationReply(head: head, body: .whole(body))))
  }

  /// Hands over the head of a reply whose body follows in `stream`.
  func deliver(_ head: HTTPResponse, _ stream: ReplyStream) {
    let completion = state.withLock { state -> Completion? in
      guard case .waiting(let completion) = state.phase else { return nil }
      state.phase = .streaming(stream)
      state.status = head.status.code
      return completion
    }
    guard let completion else { return }
    let reader = Reader(exchange: self, stream: stream)
    let body = AsyncThrowingStream { try await reader.stream.next() }
    completion(.success(InvocationReply(head: head, body: .stream(body))))
  }

  /// Ends the exchange after its streamed body.
  func finish() { conclude(.success(())) }

  /// Ends the exchange without a reply, or with only part of one.
  func fail(_ error: any Error) { conclude(.failure(error)) }

  /// Tells everyone at work on the exchange that the caller has gone or its request is incomplete.
  func abandon(_ error: any Error = CancellationError()) {
    let leave = state.withLock { state -> (FunctionVersion, FunctionScheduler.InvocationID)? in
      if case .over = state.phase { return nil }
      return state.leave
    }
    conclude(.failure(error))
    if let leave { leave.0.cancelled(leave.1) }
  }

  /// Tells the worker that nobody waits any more.
  func cancelOnConnection() {
    let connection = state.withLock { state in
      defer { state.connection = nil }
      return state.connection
    }
    connection?.cancel(self)
  }

  private func ended(_ outcome: FunctionFigures.Outcome) {
    let time = NIODeadline.now() - began
    state.withLock { $0.leave?.version }?.meter
      .invocationEnded(outcome, after: .nanoseconds(time.nanoseconds))
  }

  private func conclude(_ result: Result<Void, any Error>) {
    let before = state.withLock { state in
      defer { state.phase = .over }
      return state.phase
    }
    switch (before, result) {
    case (.waiting, .failure(let error)), (.streaming, .failure(let error)): ended(.init(error))
    case (.streaming, .success): ended(.init(status: state.withLock { $0.status }))
    default: break
    }
    switch before {
    case .waiting(let completion):
      if case .failure(let error) = result { completion(.failure(error)) }
    case .streaming(let stream): stream.finish(result)
    case .new, .over: break
    }
  }

  /// Lives as long as the reader of a streamed body: dropping it unread ends the invocation.
  private final class Reader: Sendable {
    let exchange: WorkerCall
    let stream: ReplyStream

    init(exchange: WorkerCall, stream: ReplyStream) {
      self.exchange = exchange
      self.stream = stream
    }

    deinit { exchange.abandon() }
  }
}
