import OutboundHTTP
import Synchronization

/// An HTTP transport that returns scripted responses and records the requests.
final class ScriptedHTTP: HTTPTransport {
  typealias Answer = Result<OutboundResponse, OutboundHTTPError>

  private struct State {
    var answers: [Answer]
    var requests: [OutboundRequest] = []
  }

  private let state: Mutex<State>

  init(_ answers: [Answer]) { state = Mutex(State(answers: answers)) }

  convenience init(_ bodies: String...) { self.init(bodies.map { Self.json($0) }) }

  static func json(_ body: String, status: Int = 200) -> Answer {
    .success(OutboundResponse(status: status, body: Array(body.utf8)))
  }

  static func error(_ status: Int, _ name: String, _ message: String = "m") -> Answer {
    json(
      #"{"error":{"code":\#(status),"message":"\#(message)","status":"\#(name)"}}"#,
      status: status
    )
  }

  /// The method and path of each request.
  var calls: [String] {
    state.withLock { state in
      state.requests.map { request in
        let path = request.url.split(separator: "/", maxSplits: 2).last ?? ""
        return "\(request.method) \(path)"
      }
    }
  }

  var bodies: [String] {
    state.withLock { $0.requests.map { String(decoding: $0.body, as: UTF8.self) } }
  }

  var authorizations: [String?] {
    state.withLock { $0.requests.map { $0.headers["Authorization"] } }
  }

  func send(_ request: OutboundRequest) async throws -> OutboundResponse {
    try state.withLock { state in
      state.requests.append(request)
      guard !state.answers.isEmpty else {
        throw OutboundHTTPError(.failed, "nothing is scripted for \(request.url)")
      }
      return try state.answers.removeFirst().get()
    }
  }
}
