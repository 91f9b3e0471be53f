public import FirestoreClient

/// A person in a trainer's contacts: a client or a prospect.
public protocol Contact: Sendable, Identifiable where ID == String {
  /// The document's id.
  var id: String { get }
  /// The name that the trainer sees; empty if missing or unreadable.
  var displayName: String { get }
  /// The time at which the contact was added.
  var addedAt: Timestamp { get }
}
