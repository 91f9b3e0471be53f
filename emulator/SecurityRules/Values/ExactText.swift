import DocumentModel

/// A string key that compares by bytes.
///
/// Swift's own equality, which dictionaries of strings use, treats canonically equivalent strings
/// as equal. An example is the letter `K` and the kelvin sign.
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
