/// The API routes that the stub implements.
package enum StubRoute: String, Sendable, Hashable, Codable, CaseIterable {
  case embeddings, chat, models

  /// Finds the route of a method and a path below `/v1`.
  init?(_ method: String, _ path: String) {
    switch (method, path) {
    case ("POST", "/v1/embeddings"): self = .embeddings
    case ("POST", "/v1/chat/completions"): self = .chat
    case ("GET", "/v1/models"): self = .models
    default:
      guard method == "GET", path.hasPrefix("/v1/models/") else { return nil }
      self = .models
    }
  }
}

/// A request, independent of its transport.
package struct StubRequest: Sendable {
  package var method: String
  /// The path from `/v1` or `/stub` on, without a query.
  package var path: String
  /// The `Authorization` header; it is compared and never stored.
  package var authorization: String?
  package var body: [UInt8]

  /// Creates a request.
  package init(method: String, path: String, authorization: String? = nil, body: [UInt8] = []) {
    self.method = method
    self.path = path
    self.authorization = authorization
    self.body = body
  }
}

/// A response and the way it reaches the client.
package struct StubResponse: Sendable {
  package var status: Int
  package var headers: [String: String]
  /// The body: a single piece, or one piece for each event of a stream.
  package var pieces: [[UInt8]]
  /// The delay before the response is sent.
  package var delay: Duration
  package var ending: Ending
  /// The call that this responds to; nil for the stub's control endpoints.
  var call: (number: Int, route: StubRoute)?

  /// The ways a response ends.
  package enum Ending: Sendable, Hashable {
    case whole
    /// The connection closes after the pieces, although more was announced.
    case truncated
    /// The connection closes without a response.
    case reset
  }

  init(status: Int = 200, _ body: JSON) {
    self.init(status: status, text: body.serialized)
  }

  init(status: Int, text: String) {
    self.status = status
    headers = ["Content-Type": "application/json"]
    pieces = [Array(text.utf8)]
    delay = .zero
    ending = .whole
  }

  /// Creates a stream of server-sent events that ends with `[DONE]`.
  init(events: [JSON]) {
    self.init(status: 200, text: "")
    headers["Content-Type"] = "text/event-stream; charset=utf-8"
    pieces = (events.map(\.serialized) + ["[DONE]"]).map { Array("data: \($0)\n\n".utf8) }
  }

  /// Truncates the response: a stream after some events, any other body halfway.
  mutating func truncate(after events: Int) {
    ending = .truncated
    if pieces.count > 1 {
      pieces = Array(pieces.prefix(events))
    } else {
      pieces = pieces.map { Array($0.prefix($0.count / 2)) }
    }
  }
}

/// A rejected request, reported in the API's error format.
struct StubError: Error {
  var status = 400
  var message: String
  var type = "invalid_request_error"
  var param: String?
  var code: String?

  init(_ message: String, param: String? = nil, code: String? = nil, status: Int = 400) {
    self.message = message
    self.param = param
    self.code = code
    self.status = status
  }

  /// The error for a call that has no scripted reply; its type exists in no real API.
  static func unscripted(_ message: String) -> StubError {
    var refusal = StubError(message, code: "unscripted")
    refusal.type = "stub_error"
    return refusal
  }

  var response: StubResponse {
    let error: JSON = [
      "message": .string(message), "type": .string(type),
      "param": param.map { .string($0) } ?? .null, "code": code.map { .string($0) } ?? .null,
    ]
    return StubResponse(status: status, ["error": error])
  }
}
