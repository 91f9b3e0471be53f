import ArgumentParser

/// The forms of the hub's address that people type.
enum HubAddress {
  /// Returns the address in the form `host:port`, without `http://` and a slash at the end.
  static func bare(_ address: String) -> String {
    var address = address
    if address.hasPrefix("http://") { address.removeFirst(7) }
    while address.hasSuffix("/") { address.removeLast() }
    return address
  }

  /// Throws a usage failure unless an address has a host and a port.
  static func check(_ address: String) throws {
    let example = "give host:port, such as 127.0.0.1:4400."
    guard !address.hasPrefix("https://") else {
      throw ValidationError("--hub is \(address), and the hub has no TLS; \(example)")
    }
    let parts = bare(address).split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count >= 2, let host = parts.first, !host.isEmpty, let last = parts.last,
      !bare(address).contains("/")
    else { throw ValidationError("--hub is \"\(address)\"; \(example)") }
    guard let port = Int(last), (1...65_535).contains(port) else {
      throw ValidationError("--hub is \"\(address)\", whose port is none; \(example)")
    }
  }

  /// Returns the refusal of another service's address, from the note by which the service answers.
  static func wrongPort(_ note: String, _ source: String) -> String {
    let hub = note.firstRange(of: "answers at ").map { note[$0.upperBound...].dropLast() }
    let remedy = hub.map { " Use \(source == "--hub" ? source + " " : source + "=")\($0)." } ?? ""
    return note + remedy
  }
}
