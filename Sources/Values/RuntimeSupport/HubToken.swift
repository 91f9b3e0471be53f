#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// How processes of one user find the token that a suite's control API asks for.
///
/// The token is in the suite's `server.json`, which only its user can read. A pointer in the
/// temporary folder, named after the hub's port, says where that file is.
package enum HubToken {
  /// The environment variable with the token of a hub to which no file here points.
  package static let variable = "HEARTH_TOKEN"

  /// The token of the hub at `host:port`, or nil.
  ///
  /// A hub of another machine gets only what the variable says.
  package static func find(hub: String, environment: [String: String]) -> String? {
    if let token = environment[variable], !token.isEmpty { return token }
    guard let colon = hub.lastIndex(of: ":"), let port = Int(hub[hub.index(after: colon)...]),
      let pointer = FileManager.default.contents(atPath: pointerPath(port: port))
    else { return nil }
    let host = String(hub[..<colon])
    guard isOwn(host) || host == own(pointer)?.host else { return nil }
    return own(pointer).flatMap { token(inServerFile: $0.serverFile) }
  }

  /// What the pointer of a hub must hold.
  package static func pointer(host: String, serverFile: String) throws -> Data {
    try JSONEncoder().encode(Pointer(host: host, serverFile: serverFile))
  }

  /// Where the pointer of the hub at a port is.
  package static func pointerPath(port: Int) -> String {
    FileManager.default.temporaryDirectory.appending(path: "hearth-hub-\(port).json").path
  }

  private struct Pointer: Codable {
    var host: String
    var serverFile: String
  }

  // What is damaged is as good as absent: the hub then says where its token is.
  private static func own(_ pointer: Data) -> Pointer? {
    try? JSONDecoder().decode(Pointer.self, from: pointer)
  }

  private static func token(inServerFile path: String) -> String? {
    struct Contents: Decodable { var token: String? }
    guard let data = FileManager.default.contents(atPath: path) else { return nil }
    return (try? JSONDecoder().decode(Contents.self, from: data))?.token
  }

  private static func isOwn(_ host: String) -> Bool {
    ["localhost", "[::1]", "0.0.0.0"].contains(host) || host.hasPrefix("127.")
  }
}
