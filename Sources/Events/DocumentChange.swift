package import DocumentModel

/// What one commit did to one document; at least one side is present and the two differ.
package struct DocumentChange: Sendable, Hashable {
  package var name: DocumentName
  package var before: Document?
  package var after: Document?

  /// A change; nil `before` means created, nil `after` deleted.
  package init(name: DocumentName, before: Document?, after: Document?) {
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

  /// The CloudEvents type, such as `google.cloud.firestore.document.v1.created`.
  package var eventType: String { "google.cloud.firestore.document.v1.\(rawValue)" }

  /// The kind with this CloudEvents type; nil for other types.
  package init?(eventType: String) {
    let prefix = "google.cloud.firestore.document.v1."
    guard eventType.hasPrefix(prefix) else { return nil }
    self.init(rawValue: String(eventType.dropFirst(prefix.count)))
  }

  /// Whether a change of kind `change` (never `written`) is an event of this kind.
  package func includes(_ change: DocumentEventKind) -> Bool { self == .written || self == change }
}
