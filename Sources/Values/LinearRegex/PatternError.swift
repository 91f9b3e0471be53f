/// What is wrong with a pattern, and where.
///
/// The words are those of RE2, so that an author finds them in its documentation.
package struct PatternError: Error, Equatable, CustomStringConvertible {
  /// What is wrong, in the words of RE2.
  package let message: String
  /// Where the faulty part starts, counted in Unicode scalars from the pattern's start.
  package let offset: Int

  package var description: String { "\(message) (at offset \(offset))" }
}
