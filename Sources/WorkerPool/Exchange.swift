import HTTPTypes
import Invocation
import NIOCore
import Synchronization

/// One request and its one reply, from the caller's continuation to the worker's connection.
///
/// Whoever comes first settles it: the reply, the deadline, the worker's death, or the caller
/// leaving; later news is ignored.
final class Exchange: Sendable {
  private enum Phase {
    case new
    case waiting(CheckedContinuation<InvocationReply, any Error>)
    case streaming(ReplyStream)
    case over
  }

  private struct State {
    var phase = Phase.new
    var connection: WorkerConnection?
    var leave: (version: FunctionVersion, number: FunctionScheduler.InvocationID)?
  }

  let request: InvocationRequest
  private let state = Mutex(State())

  /// An exchange that nobody has taken on yet.
  init(_ request: InvocationRequest) {
    self.request = request
  }

  /// Whether nobody waits for the reply any more.
  var isOver: Bool {
    state.withLock { if case .over = $0.phase { true } else { false } }
  }

  /// Whether a connection carries it.
  var isCarried: Bool { state.withLock { $0.connection != nil } }

  /// The number that its version has given it.
  var number: FunctionScheduler.InvocationID? { state.withLock { $0.leave?.number } }

  /// Keeps the caller's continuation; false when the caller has gone already.
  func begin(_ continuation: CheckedContinuation<InvocationReply, any Error>) -> Bool {
    state.withLock { state in
      guard case .new = state.phase else { return false }
      state.phase = .waiting(continuation)
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
    let continuation = state.withLock { state -> CheckedContinuation<InvocationReply, any Error>? in
      guard case .waiting(let continuation) = state.phase else { return nil }
      state.phase = .over
      state.connection = nil
      return continuation
    }
    continuation?.resume(returning: InvocationReply(head: head, body: .whole(body)))
  }

  /// Hands over the head of a reply whose body is to follow in `stream`.
  func deliver(_ head: HTTPResponse, _ stream: ReplyStream) {
    let continuation = state.withLock { state -> CheckedContinuation<InvocationReply, any Error>? in
      guard case .waiting(let continuation) = state.phase else { return nil }
      state.phase = .streaming(stream)
      return continuation
    }
    guard let continuation else { return }
    let reader = Reader(exchange: self, stream: stream)
    let body = AsyncThrowingStream { try await reader.stream.next() }
    continuation.resume(returning: InvocationReply(head: head, body: .stream(body)))
  }

  /// The streamed body is complete.
  func finish() { settle(.success(())) }

  /// Ends the exchange without a (whole) reply.
  func fail(_ error: any Error) { settle(.failure(error)) }

  /// The caller is gone: tells whoever works on it.
  func abandon() {
    let leave = state.withLock { state -> (FunctionVersion, FunctionScheduler.InvocationID)? in
      if case .over = state.phase { return nil }
      return state.leave
    }
    settle(.failure(CancellationError()))
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
    case .waiting(let continuation):
      if case .failure(let error) = result { continuation.resume(throwing: error) }
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
