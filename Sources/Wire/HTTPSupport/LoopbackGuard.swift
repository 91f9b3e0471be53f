import HTTPTypes
package import HummingbirdCore
import RuntimeSupport

/// Keeps web pages of other sites away from a door that can do harm.
///
/// A page may send requests to 127.0.0.1, directly (its `Origin` shows it) or under a name of its
/// own that it points there (the `Host` shows it). Ask before any handler runs.
package struct LoopbackGuard: Sendable {
  private let hosts: Set<String>

  /// A guard that lets loopback names pass, and also the names in `allowing`.
  ///
  /// Such a name is the LAN address that the user chose to listen on.
  package init(allowing hosts: [String] = []) {
    self.hosts = Set(hosts.map { $0.lowercased() })
  }

  /// The 403 for a request that is not from this machine's own pages and tools, or nil.
  package func refusal(of request: Request) -> Response? {
    guard let authority = request.head.authority, allows(hostOf: authority) else {
      return .error(
        .permissionDenied,
        "The Host header does not name this machine; use localhost or 127.0.0.1."
      )
    }
    guard let origin = request.headers[.origin] else { return nil }
    guard let separator = origin.firstRange(of: "://"),
      allows(hostOf: origin[separator.upperBound...])
    else {
      return .error(.permissionDenied, "Pages of another origin may not use this address.")
    }
    return nil
  }

  /// The 403 for a request to a name that a page of another site may own, or nil.
  ///
  /// For doors that other origins may use with CORS: a page that points its own name at this
  /// machine would count as the same origin and could read everything. IP addresses pass, because
  /// nobody can point them elsewhere; so do the names by which containers call their host.
  package func refusal(ofNameIn request: Request) -> Response? {
    guard let authority = request.head.authority,
      !Self.usual.contains(where: { authority.utf8.starts(with: $0.utf8) })
    else { return nil }
    let host = Self.host(of: authority.lowercased())
    guard
      allows(hostOf: authority) || Self.isIPv4(host) || host.contains(":")
        || host.hasSuffix(".localhost") || Self.containerNames.contains(host)
    else {
      return .error(
        .permissionDenied,
        "The Host header names \(host), not this machine; use localhost or an IP address."
      )
    }
    return nil
  }

  /// What the `Host` of nearly every client starts with.
  private static let usual = ["127.0.0.1:", "localhost:"]
  /// The names by which containers call their host.
  private static let containerNames: Set = ["host.docker.internal", "host.containers.internal"]

  private func allows(hostOf authority: some StringProtocol) -> Bool {
    let host = Self.host(of: authority.lowercased())
    return host == "localhost" || host == "::1" || Self.isLoopbackIPv4(host) || hosts.contains(host)
  }

  /// The authority without its port and brackets.
  private static func host(of authority: String) -> String {
    if authority.hasPrefix("[") {
      return String(authority.dropFirst().prefix { $0 != "]" })
    }
    return String(authority.prefix { $0 != ":" })
  }

  private static func isLoopbackIPv4(_ host: String) -> Bool {
    isIPv4(host) && host.hasPrefix("127.")
  }

  private static func isIPv4(_ host: String) -> Bool {
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
  }
}
