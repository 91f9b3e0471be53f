import HTTPMessages
import HTTPTypes
import Invocation
import NIOCore
import Synchronization

/// Functions in memory; a handler for each name decides how its runs end.
final class ScriptedInvoker: FunctionInvoker {
  /// A run of a function.
  struct Run: Sendable, Hashable {
    var function: String
    var event: String
    /// The attempt number in the request, 1 for the first attempt.
    var attempt: String
  }

  /// A function that decides how the `run`th run of a function ends, counted from 1.
  typealias Handler = @Sendable (_ run: Int) async throws -> Outcome

  /// The ways that a run ends.
  enum Outcome: Sendable {
    case ok
    case failure(String, advice: RetryAdvice? = nil)
    case error(InvocationError.Kind)
    /// A success whose body arrives in pieces.
    case body(AsyncThrowingStream<ByteBuffer, any Error>)
  }

  private struct State {
    var handlers: [String: Handler] = [:]
    var runs: [Run] = []
    var requests: [InvocationRequest] = []
    var runsPerFunction: [String: Int] = [:]
    var running = 0
    var runningMax = 0
    var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Mutex(State())

  /// Creates functions that succeed unless they have a handler.
  init(_ handlers: [String: Handler] = [:]) {
    state.withLock { $0.handlers = handlers }
  }

  /// All runs so far, in the order of their starts.
  var runs: [Run] { state.withLock { $0.runs } }

  /// The requests of all runs, in the order of their starts.
  var requests: [InvocationRequest] { state.withLock { $0.requests } }

  /// The maximum number of simultaneous runs.
  var runningMax: Int { state.withLock { $0.runningMax } }

  func set(_ function: String, _ handler: @escaping Handler) {
    state.withLock { $0.handlers[function] = handler }
  }

  /// Returns once `count` runs have begun.
  func waitForRuns(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let isThere = state.withLock { state in
        if state.runs.count >= count { return true }
        state.waiters.append((count, continuation))
        return false
      }
      if isThere { continuation.resume() }
    }
  }

  func invoke(_ request: InvocationRequest) async throws -> Response {
    let fields = request.head.headerFields
    let run = Run(
      function: request.function,
      event: fields[fieldName("ce-id")] ?? "",
      attempt: fields[fieldName("x-hearth-attempt")] ?? ""
    )
    let (handler, number, due) = state.withLock { state in
      state.runs.append(run)
      state.requests.append(request)
      state.running += 1
      state.runningMax = max(state.runningMax, state.running)
      let count = state.runs.count
      let due = state.waiters.filter { $0.count <= count }
      state.waiters.removeAll { $0.count <= count }
      let number = state.runsPerFunction[run.function, default: 0] + 1
      state.runsPerFunction[run.function] = number
      return (state.handlers[run.function], number, due)
    }
    for waiter in due { waiter.continuation.resume() }
    defer { state.withLock { $0.running -= 1 } }
    switch try await handler?(number) ?? .ok {
    case .ok:
      return Response(head: HTTPResponse(status: .ok), body: .whole(ByteBuffer()))
    case .failure(let text, let advice):
      var head = HTTPResponse(status: .internalServerError)
      head.headerFields[RetryAdvice.header] = advice?.headerValue
      return Response(head: head, body: .whole(ByteBuffer(string: text)))
    case .body(let pieces):
      return Response(head: HTTPResponse(status: .ok), body: .stream(pieces))
    case .error(let kind):
      throw InvocationError(kind, "ended as scripted.")
    }
  }

  /// A handler that runs until it is cancelled and then throws.
  static let hanging: Handler = { _ in
    let (never, continuation) = AsyncStream.makeStream(of: Void.self)
    defer { continuation.finish() }
    for await _ in never {}
    throw CancellationError()
  }
}

extension InvocationRequest {
  /// The value of a header field.
  func field(_ name: String) -> String? { HTTPField.Name(name).flatMap { head.headerFields[$0] } }
}
