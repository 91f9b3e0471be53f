/// Functions that build URLs and percent-encode their parts.
public enum OutboundURL {
  /// Returns a URL from a base, path segments and a query.
  ///
  /// Slashes at the end of `base` are dropped. The content of `base` is not encoded again.
  public static func make(
    base: String,
    path: [String] = [],
    query: [(name: String, value: String)] = []
  ) -> String {
    var url = base
    while url.hasSuffix("/") { url.removeLast() }
    for segment in path { url += "/" + encode(segment) }
    for (index, item) in query.enumerated() {
      url += (index == 0 ? "?" : "&") + encode(item.name) + "=" + encode(item.value)
    }
    return url
  }

  /// Percent-encodes all characters except for the unreserved characters of RFC 3986.
  public static func encode(_ text: String) -> String {
    var encoded: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
        UInt8(ascii: "_"), UInt8(ascii: "~"):
        encoded.append(byte)
      default:
        encoded += [UInt8(ascii: "%"), hexadecimal[Int(byte >> 4)], hexadecimal[Int(byte & 15)]]
      }
    }
    // A segment that consists of dots would refer to the current or the parent directory.
    if encoded == [UInt8(ascii: ".")] { return "%2E" }
    if encoded == [UInt8(ascii: "."), UInt8(ascii: ".")] { return "%2E%2E" }
    return String(decoding: encoded, as: UTF8.self)
  }

  /// Returns true if the host of a URL is this machine, by name or by IP address.
  ///
  /// `host` has the form that it has in a URL: an IPv6 address may have brackets.
  public static func isLoopback(host: String) -> Bool {
    let host = host.lowercased()
    if host == "[::1]" || host == "::1" { return true }
    // The zone of an IPv6 address could end like a host name.
    guard !host.contains(where: { "[]:%".contains($0) }) else { return false }
    if host == "localhost" || host.hasSuffix(".localhost") { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy(isDecimalByte)
  }

  /// Returns true for 0 to 255 without a sign or leading zeros, which some parsers read as octal.
  private static func isDecimalByte(_ text: Substring) -> Bool {
    guard let number = UInt8(text) else { return false }
    return "\(number)" == text
  }

  private static let hexadecimal = Array("0123456789ABCDEF".utf8)
}
