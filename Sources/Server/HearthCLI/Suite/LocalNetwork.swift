import LibC
import OutboundHTTP

/// The consequences of listening beyond this machine, for the user who requested it.
enum LocalNetwork {
  /// Returns a warning about what `--host` opens, and the settings that a phone needs.
  static func warning(host: String, ports: [(name: String, port: Int)]) -> String {
    let isAny = host == "0.0.0.0" || host == "::"
    let addresses = isAny ? addresses() : [host]
    let fixed = ports.filter { $0.port != 0 }.map { "\($0.name) \($0.port)" }.joined(
      separator: ", "
    )
    let portsText = fixed.isEmpty ? "" : " with the ports \(fixed)"
    let phone =
      addresses.isEmpty
      ? "No network address of this machine was found for a phone to use."
      : "On a phone use \(addresses.joined(separator: ", "))\(portsText)."
    return """
      Listening on \(host): every machine that reaches it can read and write all data, call every \
      function as anybody, and send events. Use it in a network you trust.
      Deploying, rolling back, exporting and the rest of the control API need the token of \
      server.json in the data folder, which only you can read.
      \(phone)
      Over plain HTTP the SDKs for Apple's systems (12.17 and newer) send no ID, App Check or \
      messaging token to a host other than localhost, so callables see a caller who is not signed \
      in; Android and iOS also need cleartext traffic allowed for this host.
      """
  }

  /// Returns the IPv4 addresses at which other machines may reach this one.
  static func addresses() -> [String] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return [] }
    defer { freeifaddrs(list) }
    var found: [String] = []
    var next = list
    while let interface = next {
      next = interface.pointee.ifa_next
      guard let address = interface.pointee.ifa_addr, address.pointee.sa_family == AF_INET else {
        continue
      }
      var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      let length = socklen_t(MemoryLayout<sockaddr_in>.size)
      guard
        getnameinfo(address, length, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
      else { continue }
      let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
      let name = String(decoding: bytes, as: UTF8.self)
      if !OutboundURL.isLoopback(host: name) { found.append(name) }
    }
    return found
  }
}
