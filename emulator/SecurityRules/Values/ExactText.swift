import DocumentModel

/// A text as a key: what only looks alike, such as `K` and the sign of the kelvin, is another.
///
/// Swift's own equality, which dictionaries of texts use, holds canonically equivalent ones for one.
struct ExactText: Sendable, Hashable {
  var text: String

  init(_ text: String) { self.text = text }

  static func == (left: ExactText, right: ExactText) -> Bool {
    left.text.isIdentical(to: right.text)
  }

  func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(0xFF as UInt8)
  }
}
