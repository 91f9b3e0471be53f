/// Builds addresses, percent-encoding each part.
public enum OutboundURL {
  /// Joins `base`, the segments of a path and a query.
  ///
  /// A slash at the end of `base` is dropped; the contents of `base` are not encoded again.
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

  /// Percent-encodes all but the unreserved characters of RFC 3986.
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
    // A segment of dots alone would be taken for "this folder" or "the parent folder".
    if encoded == [UInt8(ascii: ".")] { return "%2E" }
    if encoded == [UInt8(ascii: "."), UInt8(ascii: ".")] { return "%2E%2E" }
    return String(decoding: encoded, as: UTF8.self)
  }

  /// Whether the host of an address is this machine, by name or by number.
  ///
  /// `host` has the form it has in an address: an IPv6 number may have brackets.
  public static func isLoopback(host: String) -> Bool {
    let host = host.lowercased()
    if host == "[::1]" || host == "::1" { return true }
    // A zone after an IPv6 number could end like a name.
    guard !host.contains(where: { "[]:%".contains($0) }) else { return false }
    if host == "localhost" || host.hasSuffix(".localhost") { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy(isDecimalByte)
  }

  /// Whether a text is 0 to 255 without a sign or leading zeros, which some take for octal numbers.
  private static func isDecimalByte(_ text: Substring) -> Bool {
    guard let number = UInt8(text) else { return false }
    return "\(number)" == text
  }

  private static let hexadecimal = Array("0123456789ABCDEF".utf8)
}
