package import SwiftProtobuf

/// A key in a map of values, told apart by its UTF-8 bytes as the API does.
///
/// Swift's `String` takes two Unicode forms of a letter for the same.
package struct FieldName: Sendable, Hashable, ExpressibleByStringLiteral {
  package let text: String

  /// A key of that text.
  package init(_ text: String) {
    self.text = text
  }

  package init(stringLiteral text: String) {
    self.init(text)
  }

  package static func == (left: FieldName, right: FieldName) -> Bool {
    left.text == right.text && left.text.utf8.elementsEqual(right.text.utf8)
  }
}

/// How the generated messages read and write a `FieldName`: as text.
package struct FieldNameType: MapKeyType {
  package typealias BaseType = FieldName

  package static var proto3DefaultValue: FieldName { "" }

  package static func _lessThan(lhs: FieldName, rhs: FieldName) -> Bool {
    lhs.text.utf8.lexicographicallyPrecedes(rhs.text.utf8)
  }

  package static func decodeSingular<D: Decoder>(
    value: inout FieldName?,
    from decoder: inout D
  ) throws {
    var text: String?
    try decoder.decodeSingularStringField(value: &text)
    value = text.map { FieldName($0) }
  }

  package static func decodeRepeated<D: Decoder>(
    value: inout [FieldName],
    from decoder: inout D
  ) throws {
    var texts: [String] = []
    try decoder.decodeRepeatedStringField(value: &texts)
    value += texts.map { FieldName($0) }
  }

  package static func visitSingular<V: Visitor>(
    value: FieldName,
    fieldNumber: Int,
    with visitor: inout V
  ) throws {
    try visitor.visitSingularStringField(value: value.text, fieldNumber: fieldNumber)
  }

  package static func visitRepeated<V: Visitor>(
    value: [FieldName],
    fieldNumber: Int,
    with visitor: inout V
  ) throws {
    try visitor.visitRepeatedStringField(value: value.map(\.text), fieldNumber: fieldNumber)
  }

  package static func visitPacked<V: Visitor>(
    value: [FieldName],
    fieldNumber: Int,
    with visitor: inout V
  ) throws {
    try visitRepeated(value: value, fieldNumber: fieldNumber, with: &visitor)
  }
}
