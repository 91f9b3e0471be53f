/// What the stub stands in for, one name each.
package enum StubRoute: String, Sendable, Hashable, Codable, CaseIterable {
  case embeddings, chat, models

  /// The route of a method and a path below `/v1`.
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

/// A request, whichever way it came.
package struct StubRequest: Sendable {
  package var method: String
  /// The path, from `/v1` or `/stub` on, without a query.
  package var path: String
  /// The `Authorization` field; compared and then forgotten.
  package var authorization: String?
  package var body: [UInt8]

  /// A request.
  package init(method: String, path: String, authorization: String? = nil, body: [UInt8] = []) {
    self.method = method
    self.path = path
    self.authorization = authorization
    self.body = body
  }
}

/// An answer, and how it is to reach the client.
package struct StubResponse: Sendable {
  package var status: Int
  package var headers: [String: String]
  /// The body: one piece, or one for each event of a stream.
  package var pieces: [[UInt8]]
  /// How long the answer is held back.
  package var delay: Duration
  package var ending: Ending
  /// The call that it answers; nil for the stub's own control.
  var call: (number: Int, route: StubRoute)?

  /// How the exchange ends.
  package enum Ending: Sendable, Hashable {
    case whole
    /// The connection closes after the pieces, though more was announced.
    case truncated
    /// The connection closes without any answer.
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

  /// Server-sent events, closed as the protocol has it.
  init(events: [JSON]) {
    self.init(status: 200, text: "")
    headers["Content-Type"] = "text/event-stream; charset=utf-8"
    pieces = (events.map(\.serialized) + ["[DONE]"]).map { Array("data: \($0)\n\n".utf8) }
  }

  /// Cuts the answer off: a stream after some events, anything else in its middle.
  mutating func truncate(after events: Int) {
    ending = .truncated
    if pieces.count > 1 {
      pieces = Array(pieces.prefix(events))
    } else {
      pieces = pieces.map { Array($0.prefix($0.count / 2)) }
    }
  }
}

/// A request that is not taken, told as the API tells it.
struct StubRefusal: Error {
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

  /// A call for which nobody said what to answer; of a type that no real API has.
  static func unscripted(_ message: String) -> StubRefusal {
    var refusal = StubRefusal(message, code: "unscripted")
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
