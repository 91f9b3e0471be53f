/// An error in a pattern, with its position.
///
/// The messages are those of RE2, so that an author finds them in RE2's documentation.
package struct PatternError: Error, Equatable, CustomStringConvertible {
  /// The error message of RE2.
  package let message: String
  /// The start of the invalid part, in Unicode scalars from the start of the pattern.
  package let offset: Int

  package var description: String { "\(message) (at offset \(offset))" }
}
