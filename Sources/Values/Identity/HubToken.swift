import JSONText

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// A lookup of the token for a suite's control API, for processes of the same user.
///
/// The token is in the suite's `server.json`, which only its user can read. A pointer file in the
/// temporary folder, named after the hub's address, contains the path of `server.json`. Any user
/// can write a pointer file, so the token is sent only to the hub that `server.json` itself names.
package enum HubToken {
  /// The environment variable for the token of a hub that has no pointer file on this machine.
  package static let variable = "HEARTH_TOKEN"

  /// Returns the token of the hub at `host:port`; nil if none is found.
  package static func find(hub: String, environment: [String: String]) -> String? {
    if let hub = Address(hub) {
      for host in [hub.host, "0.0.0.0", "::"] {
        let path = pointerPath(host: host, port: hub.port)
        // A pointer that cannot be read leads to no token; the next one is tried.
        guard let pointer = FileManager.default.contents(atPath: path),
          let file = (try? Pointer(decodingJSON: pointer))?.serverFile,
          let token = token(inServerFile: file, ofHubAt: hub)
        else { continue }
        return token
      }
    }
    return environment[variable].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Returns the contents of a hub's pointer file.
  package static func pointer(serverFile: String) throws -> Data {
    Data(try Pointer(serverFile: serverFile).jsonBytes())
  }

  /// Returns the path of the pointer file for the hub at an address.
  package static func pointerPath(host: String, port: Int) -> String {
    let name = Address.canonical(host).replacing(":", with: "_")
    return FileManager.default.temporaryDirectory.appending(path: "hearth-hub-\(name)-\(port).json")
      .path
  }

  private struct Pointer: Codable {
    var serverFile: String
  }

  /// A hub's address in a canonical form.
  private struct Address {
    var host: String
    var port: Int

    init?(_ text: String) {
      guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...])
      else { return nil }
      host = Self.canonical(String(text[..<colon]))
      self.port = port
    }

    /// Returns the canonical form of a host: all names of this machine become `127.0.0.1`.
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
    // A damaged file is treated as absent; the hub's error then says where its token is.
    guard let data = FileManager.default.contents(atPath: path),
      let contents = try? Contents(decodingJSON: data),
      let service = contents.services["hub"], service.port == hub.port
    else { return nil }
    let host = Address.canonical(service.host)
    let isLocal = hub.host.hasPrefix("127.") || hub.host == "0.0.0.0"
    return host == hub.host || isLocal && (host == "0.0.0.0" || host == "::") ? contents.token : nil
  }
}
