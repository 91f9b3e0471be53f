import JSONText

/// The texts of the Realtime Database's protocol for WebSockets, version 5.
enum ConnectionMessages {
  /// A message of the server.
  enum Received: Sendable {
    /// The connection is open.
    case hello
    /// The server wants the client to connect again, to another host if it names one.
    case reset
    /// The server refuses the client for good.
    case refused(String)
    case response(Int, Result<Void, DatabaseError>)
    /// The server no longer accepts the token.
    case authRevoked
    /// Any other message, which only shows that the server is there.
    case other
  }

  /// Parses a message; throws `DatabaseError` for text that is not of the protocol.
  static func received(_ text: String) throws -> Received {
    guard let message = JSONObjectText(parsing: text), let kind = message.text("t"),
      let data = message.object("d")
    else {
      throw DatabaseError(.internal, "the server sent a message that is not of its protocol")
    }
    if kind == "c" {
      switch data.text("t") {
      case "h": return .hello
      case "r": return .reset
      case "s": return .refused(data.text("d") ?? "the server gave no reason")
      default: return .other
      }
    }
    if data.text("a") == "ac" { return .authRevoked }
    guard let number = data.number("r"), let body = data.object("b") else { return .other }
    return .response(Int(number), result(body))
  }

  private static func result(_ body: JSONObjectText) -> Result<Void, DatabaseError> {
    let status = body.text("s") ?? ""
    guard status != "ok" else { return .success(()) }
    let code: StatusCode =
      switch status {
      case "permission_denied": .permissionDenied
      case "invalid_token", "expired_token": .unauthenticated
      case "datastale": .aborted
      case "too_big": .outOfRange
      case "unavailable": .unavailable
      default: .invalidArgument
      }
    return .failure(DatabaseError(code, body.text("d") ?? status))
  }

  /// Returns a request with a number, an action and a body.
  static func request(_ number: Int, _ action: String, _ body: JSONValue) -> String {
    let message: JSONValue = [
      "t": "d", "d": ["r": JSONValue(number), "a": .string(action), "b": body],
    ]
    return String(decoding: message.bytes, as: UTF8.self)
  }

  /// The message that asks the server for a sign of life.
  static let ping = #"{"t":"c","d":{"t":"p","d":{}}}"#

  /// Returns the frames that carry a text: the text itself, or their number and its pieces.
  static func frames(of text: String) -> [String] {
    guard text.utf16.count > frameUnitsMax else { return [text] }
    var pieces: [String] = []
    var piece = String.UnicodeScalarView()
    var units = 0
    for scalar in text.unicodeScalars {
      let count = UTF16.width(scalar)
      if units + count > frameUnitsMax {
        pieces.append(String(piece))
        piece = String.UnicodeScalarView()
        units = 0
      }
      piece.append(scalar)
      units += count
    }
    return [String(pieces.count + 1)] + pieces + [String(piece)]
  }

  /// The maximum length of a frame in UTF-16.
  static let frameUnitsMax = 16_384
}

/// The frames of a message that arrives in pieces.
struct ConnectionFrames: Sendable {
  private let bytesMax: Int
  private var missing = 0
  private var pieces = ""

  init(bytesMax: Int) {
    self.bytesMax = bytesMax
  }

  /// Takes a frame; returns a message if the frame completes one.
  ///
  /// Throws `outOfRange` for a message that is too long.
  mutating func take(_ frame: String) throws -> String? {
    if missing > 0 {
      pieces += frame
      missing -= 1
      guard pieces.utf8.count <= bytesMax else {
        throw DatabaseError(.outOfRange, "the server sent a message of more than \(bytesMax) bytes")
      }
      guard missing == 0 else { return nil }
      defer { pieces = "" }
      return pieces
    }
    guard frame.utf8.count <= Self.digitsMax, let count = Int(frame) else { return frame }
    missing = max(0, count)
    return nil
  }

  /// The maximum length of a number of pieces; a longer text is a message.
  private static let digitsMax = 6
}
