package import OutboundHTTP
import Synchronization

/// An HTTP transport that responds in the test's own process, and records the requests.
package final class ScriptedHTTP: HTTPTransport {
  package typealias Answer = Result<OutboundResponse, OutboundHTTPError>
  package typealias Responder = @Sendable (OutboundRequest) async throws -> OutboundResponse

  private struct State {
    var requests: [OutboundRequest] = []
    var answers: [Answer]
    var isHolding = false
    var held: [CheckedContinuation<Void, Never>] = []
    var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state: Mutex<State>
  private let respond: Responder

  /// Creates a transport that gives `answers` in order, and then what `respond` returns.
  package init(
    _ answers: [Answer] = [],
    then respond: @escaping Responder = {
      throw OutboundHTTPError(.failed, "nothing is scripted for \($0.url)")
    }
  ) {
    state = Mutex(State(answers: answers))
    self.respond = respond
  }

  /// Returns an answer with a body, which is JSON in most tests.
  package static func json(_ body: String, status: Int = 200) -> Answer {
    .success(OutboundResponse(status: status, body: Array(body.utf8)))
  }

  /// All requests so far, also those that are held.
  package var requests: [OutboundRequest] { state.withLock { $0.requests } }

  /// Adds answers to those that are left.
  package func add(_ answers: Answer...) { state.withLock { $0.answers += answers } }

  /// Returns once `count` requests have arrived.
  package func wait(for count: Int) async {
    await withCheckedContinuation { continuation in
      let isThere = state.withLock { state in
        if state.requests.count >= count { return true }
        state.waiters.append((count, continuation))
        return false
      }
      if isThere { continuation.resume() }
    }
  }

  /// Makes all later requests wait until they are released.
  package func hold() { state.withLock { $0.isHolding = true } }

  /// Answers the `count` oldest requests that are held.
  package func release(_ count: Int) {
    let held = state.withLock { state in
      defer { state.held.removeFirst(min(count, state.held.count)) }
      return state.held.prefix(count)
    }
    for request in held { request.resume() }
  }

  /// Answers all requests that are held, and holds no more.
  package func release() {
    state.withLock { $0.isHolding = false }
    release(.max)
  }

  package func send(_ request: OutboundRequest) async throws -> OutboundResponse {
    await withCheckedContinuation { continuation in
      let ready = state.withLock { state in
        state.requests.append(request)
        var ready = state.waiters.filter { $0.count <= state.requests.count }.map(\.continuation)
        state.waiters.removeAll { $0.count <= state.requests.count }
        if state.isHolding { state.held.append(continuation) } else { ready.append(continuation) }
        return ready
      }
      for waiting in ready { waiting.resume() }
    }
    if Task.isCancelled { throw OutboundHTTPError(.cancelled, "the request was cancelled") }
    let answer = state.withLock { $0.answers.isEmpty ? nil : $0.answers.removeFirst() }
    return if let answer { try answer.get() } else { try await respond(request) }
  }
}
