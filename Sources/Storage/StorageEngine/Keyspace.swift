/// A named set of keys with an order of its own.
///
/// The name consists of lowercase letters and underscores.
package struct Keyspace: Sendable, Hashable {
  package let name: String
  package let form: Form

  /// Creates a keyspace, which exists in the store as soon as something is written to it.
  ///
  /// Every use of a name must have the same form.
  package init(_ name: String, _ form: Form = .any) {
    precondition(
      !name.isEmpty && name.utf8.allSatisfy { (97...122).contains($0) || $0 == 95 },
      "a keyspace's name is made of a-z and underscores"
    )
    self.name = name
    self.form = form
  }

  /// A property of a keyspace that allows an engine to store it compactly.
  package enum Form: Sendable, Hashable {
    case any
    /// All rows are written by `putAtSequence` without a prefix.
    case log
    /// There are few rows, all small. An engine may store several such keyspaces together.
    case few
  }
}
