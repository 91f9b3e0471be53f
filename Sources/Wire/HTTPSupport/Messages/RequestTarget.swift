package import StatusCodes

/// The parameters of a URL's query in order; a name may occur more than once.
package struct QueryParameters: Sendable, Hashable {
  package private(set) var items: [Item] = []

  package struct Item: Sendable, Hashable {
    package var name: String
    package var value: String
  }

  /// Parses `a=1&b=2`, decoding percent escapes and plus signs.
  ///
  /// A name without `=` has an empty value. A malformed escape stays as written.
  package init(_ query: some StringProtocol) {
    for field in query.split(separator: "&") {
      let halves = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = Self.decoded(halves[0])
      let value = halves.count == 2 ? Self.decoded(halves[1]) : ""
      items.append(Item(name: name, value: value))
    }
  }

  /// The first value of a name; nil if there is none.
  package subscript(name: String) -> String? {
    items.first { $0.name == name }?.value
  }

  /// Returns all values of a name, in order.
  package func all(_ name: String) -> [String] {
    items.compactMap { $0.name == name ? $0.value : nil }
  }

  /// Returns the value of a name as a number within bounds; nil if the name is missing.
  ///
  /// Throws `INVALID_ARGUMENT` with the bounds for any other value.
  package func number<Number: LosslessStringConvertible & Comparable>(
    _ name: String,
    in bounds: ClosedRange<Number>
  ) throws(StatusError) -> Number? {
    guard let text = self[name] else { return nil }
    guard let number = Number(text), bounds.contains(number) else {
      throw .invalidArgument(
        "\(name) is \"\(text.prefix(100))\"; give \(bounds.lowerBound) to \(bounds.upperBound)."
      )
    }
    return number
  }

  private static func decoded(_ text: some StringProtocol) -> String {
    unescaped(text.utf8, spaces: true)
      ?? String(decoding: text.utf8.map(spaceOfPlus), as: UTF8.self)
  }
}

extension Request {
  /// The path's segments, each percent-decoded; nil if an escape is malformed or not UTF-8.
  ///
  /// The path is split before decoding, so `%2F` stays within its segment. Empty segments are kept
  /// except the first. The root path has no segments.
  package var pathSegments: [String]? {
    let path = path.utf8.first == UInt8(ascii: "/") ? path.dropFirst() : path[...]
    guard !path.isEmpty else { return [] }
    var segments: [String] = []
    for segment in path.split(separator: "/", omittingEmptySubsequences: false) {
      guard let decoded = percentDecoded(segment) else { return nil }
      segments.append(decoded)
    }
    return segments
  }
}

/// Returns the text with percent escapes decoded; nil if an escape is malformed or not UTF-8.
package func percentDecoded(_ text: some StringProtocol) -> String? {
  unescaped(text.utf8, spaces: false)
}

private func unescaped(_ text: some Collection<UInt8>, spaces: Bool) -> String? {
  var bytes: [UInt8] = []
  bytes.reserveCapacity(text.count)
  var rest = text.makeIterator()
  while let byte = rest.next() {
    guard byte == UInt8(ascii: "%") else {
      bytes.append(spaces ? spaceOfPlus(byte) : byte)
      continue
    }
    guard let high = rest.next().flatMap(hexDigit), let low = rest.next().flatMap(hexDigit) else {
      return nil
    }
    bytes.append(high << 4 | low)
  }
  return String(validating: bytes, as: UTF8.self)
}

/// Returns a space for a plus sign, which stands for a space in a query.
private func spaceOfPlus(_ byte: UInt8) -> UInt8 {
  byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte
}

private func hexDigit(_ byte: UInt8) -> UInt8? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
  default: nil
  }
}
