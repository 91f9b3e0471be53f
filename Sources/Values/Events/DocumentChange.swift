package import DocumentModel

/// What one commit did to one document; at least one side is present and the two differ.
package struct DocumentChange: Sendable, Hashable {
  package var name: DocumentName
  package var before: FirestoreDocument?
  package var after: FirestoreDocument?

  /// A change; nil `before` means created, nil `after` deleted.
  package init(name: DocumentName, before: FirestoreDocument?, after: FirestoreDocument?) {
    self.name = name
    self.before = before
    self.after = after
  }

  /// The kind of event this change is, besides `written`.
  package var kind: DocumentEventKind {
    before == nil ? .created : after == nil ? .deleted : .updated
  }
}

/// The Firestore event kinds a function can ask for.
package enum DocumentEventKind: String, Sendable, Hashable, CaseIterable, Codable {
  case created, updated, deleted, written

  /// Whether a change of kind `change` (never `written`) is an event of this kind.
  package func includes(_ change: DocumentEventKind) -> Bool { self == .written || self == change }
}

/// A CloudEvents type of Firestore's, such as `google.cloud.firestore.document.v1.created`.
package struct DocumentEventType: Sendable, Hashable {
  package var kind: DocumentEventKind
  /// Whether the event names its writer, in `authtype` and `authid`.
  package var hasAuthContext: Bool

  /// The type of events of a kind.
  package init(_ kind: DocumentEventKind, hasAuthContext: Bool = false) {
    self.kind = kind
    self.hasAuthContext = hasAuthContext
  }

  /// The type with this name; nil for a name that is not Firestore's.
  package init?(name: String) {
    guard name.hasPrefix(Self.prefix) else { return nil }
    var rest = name.dropFirst(Self.prefix.count)
    hasAuthContext = rest.hasSuffix(Self.authSuffix)
    if hasAuthContext { rest.removeLast(Self.authSuffix.count) }
    guard let kind = DocumentEventKind(rawValue: String(rest)) else { return nil }
    self.kind = kind
  }

  /// The name as `ce-type` and the manifest spell it.
  package var name: String { Self.prefix + kind.rawValue + (hasAuthContext ? Self.authSuffix : "") }

  private static let prefix = "google.cloud.firestore.document.v1."
  private static let authSuffix = ".withAuthContext"
}
