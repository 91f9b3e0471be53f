/// Header fields in order; names compare without regard to case.
public struct OutboundHeaders: Sendable, Sequence, ExpressibleByDictionaryLiteral {
  private var fields: [(name: String, value: String)] = []

  /// No fields.
  public init() {}

  /// Fields in the order written.
  public init(dictionaryLiteral elements: (String, String)...) {
    fields = elements.map { (name: $0.0, value: $0.1) }
  }

  /// The first value of a field; setting replaces all fields of the name, and nil removes them.
  public subscript(name: String) -> String? {
    get { fields.first { Self.equal($0.name, name) }?.value }
    set {
      fields.removeAll { Self.equal($0.name, name) }
      if let newValue { append(name, newValue) }
    }
  }

  /// Adds a field, beside those of the same name.
  public mutating func append(_ name: String, _ value: String) {
    fields.append((name: name, value: value))
  }

  /// All values of a field, in order.
  public func values(_ name: String) -> [String] {
    fields.filter { Self.equal($0.name, name) }.map(\.value)
  }

  /// Iterates over the fields in order.
  public func makeIterator() -> Array<(name: String, value: String)>.Iterator {
    fields.makeIterator()
  }

  private static func equal(_ left: String, _ right: String) -> Bool {
    func folded(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte | 0x20 : byte }
    return left.utf8.count == right.utf8.count
      && zip(left.utf8, right.utf8).allSatisfy { folded($0) == folded($1) }
  }
}
