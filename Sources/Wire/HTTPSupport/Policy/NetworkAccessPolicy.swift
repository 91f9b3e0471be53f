package import HTTPTypes
package import StatusCodes

/// The policy on who may use the suite's ports, checked before any handler runs.
///
/// A web page of another site can send requests to 127.0.0.1 in three ways: with its `Origin`;
/// without one, as images and links do (`Sec-Fetch-Site` and `Referer` show it); or under its own
/// host name that it points to this machine (`Host` shows it). Programs send none of these headers
/// except `Host`.
package struct NetworkAccessPolicy: Sendable {
  /// True if only programs on this machine can reach the ports.
  package let isLoopback: Bool
  private let host: String
  /// The origins given with `--allow-origin`, in lower case.
  private let origins: Set<String>
  /// The hosts of the allowed origins, under which pages may also address the suite.
  private let originHosts: Set<String>

  /// Creates a policy for services that listen on `host` and may be used by pages of `origins`.
  ///
  /// Pages of this machine and of `*.localhost` are always allowed.
  package init(listeningOn host: String = "127.0.0.1", allowing origins: [String] = []) {
    self.host = host.lowercased()
    isLoopback = Self.isLoopback(self.host)
    self.origins = Set(origins.map { Self.trimmed($0.lowercased()) })
    originHosts = Set(self.origins.compactMap { Self.authority(of: $0).map(Self.host(of:)) })
  }

  /// A description of who may use the ports, for people.
  package var description: String {
    let pages = (["localhost"] + origins.sorted()).joined(separator: ", ")
    let programs = isLoopback ? "programs of this machine" : "every machine that reaches \(host)"
    return "\(programs), and pages of \(pages); the control API to anyone with its token"
  }

  /// The flag that error messages mention.
  package static let flag = "--allow-origin"

  /// Returns `PERMISSION_DENIED` for a request that a foreign page may have caused; nil otherwise.
  package func refusal(of head: HTTPRequest) -> StatusError? {
    if let authority = head.authority, !isUsual(authority) {
      let name = Self.host(of: authority.lowercased())
      guard isOwn(name: name) else {
        return StatusError(
          .permissionDenied,
          "The Host header names \(name), not this machine; use localhost or an IP address, or "
            + "start the suite with \(Self.flag) http://\(name)."
        )
      }
    }
    if let origin = head.headerFields[.origin] { return refusal(ofOrigin: origin) }
    let site = head.headerFields[Self.fetchSite]
    let referrer = head.headerFields[.referer].map { Self.origin(of: $0) ?? $0 }
    guard site == "cross-site" else {
      // Browsers send the site only to trusted addresses; to other addresses they send the
      // referrer.
      return site == nil ? referrer.flatMap(refusal(ofOrigin:)) : nil
    }
    // A link that a user follows may come from any site, as in production.
    if head.headerFields[Self.fetchMode] == "navigate",
      head.headerFields[Self.fetchDestination] == "document", head.method == .get
    {
      return nil
    }
    // Browsers treat localhost and 127.0.0.1 as different sites.
    guard let referrer else {
      return Self.foreign("A page of another site that hides its address", "its origin")
    }
    return refusal(ofOrigin: referrer)
  }

  private func refusal(ofOrigin origin: String) -> StatusError? {
    let origin = Self.trimmed(origin.lowercased())
    if origins.contains(origin) { return nil }
    if let authority = Self.authority(of: origin) {
      let name = Self.host(of: authority)
      if Self.isLoopback(name) || !isLoopback && name == host { return nil }
    }
    return Self.foreign("A page of \(origin)", origin)
  }

  private static func foreign(_ who: String, _ origin: String) -> StatusError {
    StatusError(
      .permissionDenied,
      "\(who) may not use this suite. If the page is yours, start the suite with "
        + "\(flag) \(origin)."
    )
  }

  // MARK: - Names

  /// Returns true for the usual `Host` values, as a fast path for nearly every client.
  private func isUsual(_ authority: String) -> Bool {
    for name in ["127.0.0.1:", "localhost:"] where authority.utf8.starts(with: name.utf8) {
      return authority.utf8.dropFirst(name.utf8.count).allSatisfy { (0x30...0x39).contains($0) }
    }
    return false
  }

  /// Returns true if no one else can control this host name.
  ///
  /// IP addresses are accepted because they cannot be pointed elsewhere.
  private func isOwn(name: String) -> Bool {
    if Self.isLoopback(name) || Self.isIPv4(name) || Self.isIPv6(name) { return true }
    if Self.containerNames.contains(name) || originHosts.contains(name) || name == host {
      return true
    }
    // Machines in a local network have names without a dot, or mDNS names.
    return !isLoopback && (!name.contains(".") || name.hasSuffix(".local"))
  }

  /// The names under which containers reach their host.
  private static let containerNames: Set = ["host.docker.internal", "host.containers.internal"]

  private static func isLoopback(_ host: String) -> Bool {
    host == "localhost" || host.hasSuffix(".localhost") || host == "::1"
      || isIPv4(host) && host.hasPrefix("127.")
  }

  private static func isIPv4(_ host: String) -> Bool {
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4
      && parts.allSatisfy { part in part.allSatisfy(\.isASCIIDigit) && UInt8(part) != nil }
  }

  private static func isIPv6(_ host: some StringProtocol) -> Bool {
    host.contains(":") && host.allSatisfy { $0.isASCII && $0.isHexDigit || $0 == ":" || $0 == "." }
  }

  /// Returns the host without port and brackets; a malformed authority in parentheses.
  private static func host(of authority: String) -> String {
    let host: Substring
    let rest: Substring
    if authority.hasPrefix("["), let end = authority.firstIndex(of: "]") {
      host = authority[authority.index(after: authority.startIndex)..<end]
      rest = authority[authority.index(after: end)...]
      guard isIPv6(host) else {
        return "(\(authority))"
      }
    } else {
      host = authority.prefix { $0 != ":" }
      rest = authority[host.endIndex...]
      let isName = host.allSatisfy {
        $0.isASCII && ($0.isLetter || $0.isNumber || "-._".contains($0))
      }
      guard isName else { return "(\(authority))" }
    }
    guard rest.isEmpty || rest.first == ":" && rest.dropFirst().allSatisfy(\.isASCIIDigit) else {
      return "(\(authority))"
    }
    // A name may end with the dot of the DNS root.
    return String(host.hasSuffix(".") ? host.dropLast() : host)
  }

  /// Returns the part after `://` in an origin; nil for `null`.
  private static func authority(of origin: String) -> String? {
    origin.firstRange(of: "://").map { String(origin[$0.upperBound...]) }
  }

  /// Returns the origin of a URL.
  private static func origin(of address: String) -> String? {
    guard let scheme = address.firstRange(of: "://") else { return nil }
    let authority = address[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    return address[..<scheme.upperBound] + String(authority)
  }

  private static func trimmed(_ origin: String) -> String {
    origin.hasSuffix("/") ? String(origin.dropLast()) : origin
  }

  private static let fetchSite = name("sec-fetch-site")
  private static let fetchMode = name("sec-fetch-mode")
  private static let fetchDestination = name("sec-fetch-dest")

  private static func name(_ text: String) -> HTTPField.Name {
    guard let name = HTTPField.Name(text) else { preconditionFailure("\(text) is a field's name") }
    return name
  }
}

extension Character {
  fileprivate var isASCIIDigit: Bool { ("0"..."9").contains(self) }
}
