/// An ordered list of header fields, whose names are case-insensitive.
public struct OutboundHeaders: Sendable, Sequence, ExpressibleByDictionaryLiteral {
  private var fields: [(name: String, value: String)] = []

  /// Creates a list without fields.
  public init() {}

  /// Creates a list of fields in the order of the literal.
  public init(dictionaryLiteral elements: (String, String)...) {
    fields = elements.map { (name: $0.0, value: $0.1) }
  }

  /// The first value of a field.
  ///
  /// Setting it replaces all fields with the name; nil removes them.
  public subscript(name: String) -> String? {
    get { fields.first { Self.equal($0.name, name) }?.value }
    set {
      fields.removeAll { Self.equal($0.name, name) }
      if let newValue { append(name, newValue) }
    }
  }

  /// Appends a field and keeps other fields with the same name.
  public mutating func append(_ name: String, _ value: String) {
    fields.append((name: name, value: value))
  }

  /// Returns all values of a field, in order.
  public func values(_ name: String) -> [String] {
    fields.filter { Self.equal($0.name, name) }.map(\.value)
  }

  /// Returns an iterator over the fields, in order.
  public func makeIterator() -> Array<(name: String, value: String)>.Iterator {
    fields.makeIterator()
  }

  private static func equal(_ left: String, _ right: String) -> Bool {
    func folded(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte | 0x20 : byte }
    return left.utf8.count == right.utf8.count
      && zip(left.utf8, right.utf8).allSatisfy { folded($0) == folded($1) }
  }
}
