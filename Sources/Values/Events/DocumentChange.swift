package import DocumentModel

/// A change that one commit made to one document.
///
/// At least one of `before` and `after` is present, and the two differ.
package struct DocumentChange: Sendable, Hashable {
  package var name: DocumentName
  package var before: FirestoreDocument?
  package var after: FirestoreDocument?

  /// Creates a change; nil `before` means created, nil `after` means deleted.
  package init(name: DocumentName, before: FirestoreDocument?, after: FirestoreDocument?) {
    self.name = name
    self.before = before
    self.after = after
  }

  /// The specific kind of the change, never `written`.
  package var kind: ChangeKind {
    before == nil ? .created : after == nil ? .deleted : .updated
  }
}

/// A CloudEvents type of Firestore, such as `google.cloud.firestore.document.v1.created`.
package struct DocumentEventType: Sendable, Hashable {
  package var kind: ChangeKind
  /// True if the event identifies its writer, in `authtype` and `authid`.
  package var hasAuthContext: Bool

  package init(_ kind: ChangeKind, hasAuthContext: Bool = false) {
    self.kind = kind
    self.hasAuthContext = hasAuthContext
  }

  /// Parses a type name; nil if it is not a name of a Firestore type.
  package init?(name: String) {
    guard name.hasPrefix(Self.prefix) else { return nil }
    var rest = name.dropFirst(Self.prefix.count)
    hasAuthContext = rest.hasSuffix(Self.authSuffix)
    if hasAuthContext { rest.removeLast(Self.authSuffix.count) }
    guard let kind = ChangeKind(rawValue: String(rest)) else { return nil }
    self.kind = kind
  }

  /// The name as written in `ce-type` and in the manifest.
  package var name: String { Self.prefix + kind.rawValue + (hasAuthContext ? Self.authSuffix : "") }

  private static let prefix = "google.cloud.firestore.document.v1."
  private static let authSuffix = ".withAuthContext"
}
