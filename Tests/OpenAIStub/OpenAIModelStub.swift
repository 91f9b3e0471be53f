package import OutboundHTTP
import Synchronization

/// An HTTP transport that runs the stub in the test's own process, in place of the network.
///
/// No time passes. A response delayed beyond the request's timeout fails at once; any other
/// response arrives at once.
package final class OpenAIModelStub: HTTPTransport {
  /// The base URL to configure in clients; it is never resolved or connected to.
  package static let baseURL = "http://openai.test/v1"
  private static let origin = "http://openai.test"

  private let state = Mutex(StubState())

  /// Creates a stub without a script.
  package init() {}

  /// Adds to the script.
  package func add(_ script: StubScript) throws { try state.withLock { try $0.add(script) } }

  /// Adds chat replies to the queue.
  package func reply(_ replies: ScriptedReply...) throws { try add(StubScript(chat: replies)) }

  /// Plans faults, each counted from the next call on.
  package func fail(_ faults: StubFault...) throws {
    try state.withLock { state in for fault in faults { try state.plan(fault) } }
  }

  /// The requests received so far.
  package var journal: StubJournal { state.withLock { $0.journal } }

  /// The number of queued chat replies that no call has taken yet.
  package var repliesLeft: Int { state.withLock { $0.repliesLeft } }

  package func send(_ request: OutboundRequest) async throws -> OutboundResponse {
    let response = try answer(request)
    guard response.ending == .whole else {
      throw OutboundHTTPError(.failed, "openai.test: the connection broke off")
    }
    return OutboundResponse(
      status: response.status,
      headers: Self.fields(response),
      body: response.pieces.flatMap { $0 }
    )
  }

  package func stream(_ request: OutboundRequest) async throws -> OutboundStreamedResponse {
    let response = try answer(request)
    return OutboundStreamedResponse(
      status: response.status,
      headers: Self.fields(response),
      body: OutboundBody(response.pieces)
    )
  }

  private func answer(_ request: OutboundRequest) throws -> StubResponse {
    guard request.url.hasPrefix(Self.origin + "/") else {
      throw OutboundHTTPError(.cannotConnect, "openai.test is asked for another host")
    }
    let path = request.url.dropFirst(Self.origin.count).prefix { $0 != "?" }
    let response = state.withLock {
      $0.answer(
        StubRequest(
          method: request.method,
          path: String(path),
          authorization: request.headers["Authorization"],
          body: request.body
        )
      )
    }
    if let timeout = request.timeout, response.delay >= timeout {
      throw OutboundHTTPError(.timedOut, "openai.test: the time-out was reached")
    }
    if response.ending == .reset {
      throw OutboundHTTPError(.failed, "openai.test: the connection was reset")
    }
    return response
  }

  private static func fields(_ response: StubResponse) -> OutboundHeaders {
    response.headers.reduce(into: OutboundHeaders()) { $0.append($1.key, $1.value) }
  }
}
