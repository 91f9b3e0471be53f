import DatabaseModel
import JSONText

/// The value that the events of successive streams describe.
struct ValueStream: Sendable {
  private var node = DatabaseNode.empty
  private var shown: DatabaseNode?
  private var event = ""

  /// The number of lines that have arrived.
  private(set) var linesCount = 0

  /// Takes a line of the stream; returns a node if the line completes a different one.
  ///
  /// Throws `DatabaseError` if the server ends the stream.
  mutating func take(_ line: String) throws -> DatabaseNode? {
    linesCount += 1
    if line.hasPrefix("event:") {
      event = Self.content(of: line)
    } else if line.hasPrefix("data:") {
      return try take(event, Array(Self.content(of: line).utf8))
    }
    return nil
  }

  private static func content(of line: String) -> String {
    let content = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)[1]
    return String(content.first == " " ? content.dropFirst() : content)
  }

  private mutating func take(_ event: String, _ data: [UInt8]) throws -> DatabaseNode? {
    switch event {
    case "put", "patch":
      guard let object = JSONObjectText(parsing: data), let text = object.text("path"),
        let json = object["data"]
      else { throw Self.malformed }
      let path = DatabasePath(text.split(separator: "/").map { String($0) })
      if event == "put" {
        node.set(try DatabaseSnapshot.node(json), at: path)
      } else {
        try merge(json, at: path)
      }
    case "cancel":
      throw DatabaseError(.permissionDenied, "the rules no longer allow the value to be read")
    case "auth_revoked":
      throw DatabaseError(.unauthenticated, "the token has expired")
    default: return nil
    }
    guard node != shown else { return nil }
    shown = node
    return node
  }

  private mutating func merge(_ json: [UInt8], at path: DatabasePath) throws {
    guard let members = JSONObjectText(parsing: json) else { throw Self.malformed }
    for name in members.memberNames {
      let below = DatabasePath(name.split(separator: "/").map { String($0) })
      node.set(try DatabaseSnapshot.node(members[name] ?? []), at: path.appending(below))
    }
  }

  private static let malformed = DatabaseError(
    .internal,
    "the server sent an event that is not of the Realtime Database"
  )
}
