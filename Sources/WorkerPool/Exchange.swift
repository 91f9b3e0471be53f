import HTTPTypes
import Invocation
import NIOCore
import Synchronization

/// One request and its one reply, from the caller to the worker's connection.
///
/// Whoever comes first settles it: the reply, the deadline, the worker's death, or the caller
/// leaving; later news is ignored.
final class Exchange: Sendable {
  private enum Phase {
    case new
    case waiting(Completion)
    case streaming(ReplyStream)
    case over
  }

  private struct State {
    var phase = Phase.new
    var connection: WorkerConnection?
    var leave: (version: FunctionVersion, number: FunctionScheduler.InvocationID)?
  }

  /// Hears what becomes of an exchange, once, on any thread.
  typealias Completion = @Sendable (Result<InvocationReply, any Error>) -> Void

  let request: InvocationRequest
  /// Where the caller is; a connection of the same event loop is the quickest.
  let eventLoop: (any EventLoop)?
  private let state = Mutex(State())

  /// An exchange that nobody has taken on yet.
  init(_ request: InvocationRequest, near eventLoop: (any EventLoop)? = nil) {
    self.request = request
    self.eventLoop = eventLoop
  }

  /// Whether nobody waits for the reply any more.
  var isOver: Bool {
    state.withLock { if case .over = $0.phase { true } else { false } }
  }

  /// Whether a connection carries it.
  var isCarried: Bool { state.withLock { $0.connection != nil } }

  /// The number that its version has given it.
  var number: FunctionScheduler.InvocationID? { state.withLock { $0.leave?.number } }

  /// Keeps whom to tell; false when the caller has gone already.
  func begin(_ completion: @escaping Completion) -> Bool {
    state.withLock { state in
      guard case .new = state.phase else { return false }
      state.phase = .waiting(completion)
      return true
    }
  }

  /// Notes who must know when the caller leaves; false when it has left already.
  func assign(_ version: FunctionVersion, _ number: FunctionScheduler.InvocationID) -> Bool {
    state.withLock { state in
      if case .over = state.phase { return false }
      state.leave = (version, number)
      return true
    }
  }

  /// The request is about to be written; false when nobody waits for the reply any more.
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
    completion?(.success(InvocationReply(head: head, body: .whole(body))))
  }

  /// Hands over the head of a reply whose body is to follow in `stream`.
  func deliver(_ head: HTTPResponse, _ stream: ReplyStream) {
    let completion = state.withLock { state -> Completion? in
      guard case .waiting(let completion) = state.phase else { return nil }
      state.phase = .streaming(stream)
      return completion
    }
    guard let completion else { return }
    let reader = Reader(exchange: self, stream: stream)
    let body = AsyncThrowingStream { try await reader.stream.next() }
    completion(.success(InvocationReply(head: head, body: .stream(body))))
  }

  /// The streamed body is complete.
  func finish() { settle(.success(())) }

  /// Ends the exchange without a (whole) reply.
  func fail(_ error: any Error) { settle(.failure(error)) }

  /// The caller is gone, or its request does not arrive whole: tells whoever works on it.
  func abandon(_ error: any Error = CancellationError()) {
    let leave = state.withLock { state -> (FunctionVersion, FunctionScheduler.InvocationID)? in
      if case .over = state.phase { return nil }
      return state.leave
    }
    settle(.failure(error))
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

  private func settle(_ result: Result<Void, any Error>) {
    let before = state.withLock { state in
      defer { state.phase = .over }
      return state.phase
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
    let exchange: Exchange
    let stream: ReplyStream

    init(exchange: Exchange, stream: ReplyStream) {
      self.exchange = exchange
      self.stream = stream
    }

    deinit { exchange.abandon() }
  }
}
