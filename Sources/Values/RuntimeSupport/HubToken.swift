#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// How processes of one user find the token that a suite's control API asks for.
///
/// The token is in the suite's `server.json`, which only its user can read. A pointer in the
/// temporary folder, named after the hub's address, says where that file is. Anybody can write a
/// pointer, so the token goes only to the hub that `server.json` itself names.
package enum HubToken {
  /// The environment variable with the token of a hub to which no file here points.
  package static let variable = "HEARTH_TOKEN"

  /// The token of the hub at `host:port`, or nil.
  package static func find(hub: String, environment: [String: String]) -> String? {
    if let hub = Address(hub) {
      for host in [hub.host, "0.0.0.0", "::"] {
        let path = pointerPath(host: host, port: hub.port)
        guard let pointer = FileManager.default.contents(atPath: path),
          let file = (try? JSONDecoder().decode(Pointer.self, from: pointer))?.serverFile,
          let token = token(inServerFile: file, ofHubAt: hub)
        else { continue }
        return token
      }
    }
    return environment[variable].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// What the pointer of a hub must hold.
  package static func pointer(serverFile: String) throws -> Data {
    try JSONEncoder().encode(Pointer(serverFile: serverFile))
  }

  /// Where the pointer of the hub at an address is.
  package static func pointerPath(host: String, port: Int) -> String {
    let name = Address.canonical(host).replacing(":", with: "_")
    return FileManager.default.temporaryDirectory.appending(path: "hearth-hub-\(name)-\(port).json")
      .path
  }

  private struct Pointer: Codable {
    var serverFile: String
  }

  /// Where a hub listens, in one spelling.
  private struct Address {
    var host: String
    var port: Int

    init?(_ text: String) {
      guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...])
      else { return nil }
      host = Self.canonical(String(text[..<colon]))
      self.port = port
    }

    /// The names of this machine are one; a suite on all addresses has each of them.
    static func canonical(_ host: String) -> String {
      let bare = host.lowercased().filter { $0 != "[" && $0 != "]" }
      return bare == "localhost" || bare == "::1" ? "127.0.0.1" : bare
    }
  }

  private static func token(inServerFile path: String, ofHubAt hub: Address) -> String? {
    struct Contents: Decodable {
      struct Service: Decodable {
        var host: String
        var port: Int
      }
      var token: String?
      var services: [String: Service]
    }
    // What is damaged is as good as absent: the hub then says where its token is.
    guard let data = FileManager.default.contents(atPath: path),
      let contents = try? JSONDecoder().decode(Contents.self, from: data),
      let service = contents.services["hub"], service.port == hub.port
    else { return nil }
    let host = Address.canonical(service.host)
    let isLocal = hub.host.hasPrefix("127.") || hub.host == "0.0.0.0"
    return host == hub.host || isLocal && (host == "0.0.0.0" || host == "::") ? contents.token : nil
  }
}
