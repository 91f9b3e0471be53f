import DatabaseModel
import DatabaseTree
import JSONText

/// A message to a client, which is encoded when it is sent.
enum ServerMessage: Sendable {
  case text(String)
  /// The response to a request, with the JSON of its data.
  case reply(Int, status: String, data: [UInt8])
  case node(Int, EncodedNode)
  case value(DatabasePath, EncodedNode, tag: Int?)
  case merge(DatabasePath, EncodedMembers, tag: Int?)
  case revoked(DatabasePath, DatabaseQuery?)

  static func hello(atMilliseconds now: Int64, host: String, session: String) -> ServerMessage {
    .text(
      #"{"t":"c","d":{"t":"h","d":{"ts":\#(now),"v":"5","h":\#(jsonQuoted(host)),"#
        + #""s":"\#(session)"}}}"#
    )
  }

  /// Creates a control message; clients ignore one whose inner `d` is missing.
  static func control(_ type: String, _ data: String = "{}") -> ServerMessage {
    .text(#"{"t":"c","d":{"t":"\#(type)","d":\#(data)}}"#)
  }

  static let tokenExpired = ServerMessage.text(
    #"{"t":"d","d":{"a":"ac","b":{"s":"expired_token","d":"Auth token is expired"}}}"#
  )

  static func error(_ number: Int, _ error: DatabaseError) -> ServerMessage {
    .failure(number, status: error.kind.wireStatus, error.message)
  }

  static func failure(_ number: Int, status: String, _ message: String) -> ServerMessage {
    .reply(number, status: status, data: Array(jsonQuoted(message).utf8))
  }

  /// The JSON of the message.
  var json: [UInt8] {
    switch self {
    case .text(let text): return Array(text.utf8)
    case .reply(let number, let status, let data):
      return Self.join(#"{"t":"d","d":{"r":\#(number),"b":{"s":"\#(status)","d":"#, data, "}}}")
    case .node(let number, let node):
      return Self.join(#"{"t":"d","d":{"r":\#(number),"b":{"s":"ok","d":"#, node.json, "}}}")
    case .value(let path, let node, let tag): return Self.push("d", path, node.json, tag)
    case .merge(let path, let nodes, let tag): return Self.push("m", path, nodes.json, tag)
    case .revoked(let path, let query):
      let name = jsonQuoted(Self.text(of: path))
      let list = query.map { Array(#","q":["#.utf8) + $0.wireJSON + Array("]".utf8) } ?? []
      return Self.join(#"{"t":"d","d":{"a":"c","b":{"p":\#(name)"#, list, "}}}")
    }
  }

  private static func push(
    _ action: String,
    _ path: DatabasePath,
    _ json: [UInt8],
    _ tag: Int?
  ) -> [UInt8] {
    join(
      #"{"t":"d","d":{"a":"\#(action)","b":{"p":\#(jsonQuoted(text(of: path))),"d":"#,
      json,
      (tag.map { #","t":\#($0)"# } ?? "") + "}}}"
    )
  }

  private static func text(of path: DatabasePath) -> String { path.keys.joined(separator: "/") }

  private static func join(_ start: String, _ middle: [UInt8], _ end: String) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(start.utf8.count + middle.count + end.utf8.count)
    bytes += start.utf8
    bytes += middle
    bytes += end.utf8
    return bytes
  }
}

extension DatabaseError.Kind {
  fileprivate var wireStatus: String {
    switch self {
    case .permissionDenied: "permission_denied"
    case .stale: "datastale"
    case .missingIndex, .invalid: "failed"
    case .tooBig: "too_big"
    case .unavailable: "unavailable"
    }
  }
}
