/// A change that one commit made at one place of the Realtime Database.
///
/// The place is the node that was written, or a node above it that a function watches. Nodes that
/// other functions watch may be below it. The caller is that of the commit.
package struct DatabaseChange: Sendable, Hashable {
  /// The name of the database's instance.
  package var instance: String
  /// The keys on the way to the node; empty for the root.
  package var path: [String]
  /// The node before the change, as JSON without lists and priorities; `null` if there was none.
  package var before: [UInt8]
  /// The node after the change, in the same form.
  package var after: [UInt8]

  package init(instance: String, path: [String], before: [UInt8], after: [UInt8]) {
    self.instance = instance
    self.path = path
    self.before = before
    self.after = after
  }

  /// The specific kind of the change, never `written`.
  package var kind: ChangeKind {
    before == Self.absent ? .created : after == Self.absent ? .deleted : .updated
  }

  /// The JSON of a node that does not exist.
  package static let absent = Array("null".utf8)
}

/// A CloudEvents type of the Realtime Database, such as `google.firebase.database.ref.v1.created`.
package struct DatabaseEventType: Sendable, Hashable {
  package var kind: ChangeKind

  package init(_ kind: ChangeKind) {
    self.kind = kind
  }

  /// Parses a type name; nil if it is not a name of a type of the Realtime Database.
  package init?(name: String) {
    guard name.hasPrefix(Self.prefix),
      let kind = ChangeKind(rawValue: String(name.dropFirst(Self.prefix.count)))
    else { return nil }
    self.kind = kind
  }

  /// The name as written in `ce-type` and in the manifest.
  package var name: String { Self.prefix + kind.rawValue }

  private static let prefix = "google.firebase.database.ref.v1."
}
