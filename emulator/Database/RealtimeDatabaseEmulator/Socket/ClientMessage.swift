import JSONText

/// A message of a client.
struct ClientMessage {
  var content: Content
  /// The text, for the parts that are passed on as written.
  var text: [UInt8]

  enum Content {
    /// A control message, with its type.
    case control(String)
    /// A request: its number, its action and what the action needs.
    case request(number: Int, action: String, body: JSONTree)
  }

  /// Parses a message; nil for anything that no client sends.
  init?(_ text: [UInt8]) {
    self.text = text
    // The error does not matter to the client, which cannot know which message it belongs to.
    guard let tree = try? JSONTree.parse(text), let data = tree["d"] else { return nil }
    switch tree["t"]?.text {
    case "c":
      guard let type = data["t"]?.text else { return nil }
      content = .control(type)
    case "d":
      guard let number = data["r"]?.integer, let action = data["a"]?.text else { return nil }
      content = .request(number: number, action: action, body: data["b"] ?? .null)
    default: return nil
    }
  }

  /// Returns the number of the request at the beginning of a text; nil if it does not tell.
  static func requestNumber(in beginning: [UInt8]) -> Int? {
    let text = String(decoding: beginning, as: UTF8.self)
    // The value of the request may contain the same text, but comes after it.
    guard let start = text.firstRange(of: #""r":"#) else { return nil }
    return Int(text[start.upperBound...].prefix { $0.isASCII && $0.isNumber })
  }

  /// The JSON of a member of the request's body, as it was written.
  func bodyText(_ name: String) -> [UInt8]? {
    JSONObjectText(parsing: text)?.object("d")?.object("b")?[name]
  }
}
