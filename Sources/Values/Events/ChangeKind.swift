/// A kind of change, of a document or of a value, that a function can subscribe to.
package enum ChangeKind: String, Sendable, Hashable, CaseIterable, Codable {
  case created, updated, deleted, written

  /// Returns true if a change of kind `change` (never `written`) is an event of this kind.
  package func includes(_ change: ChangeKind) -> Bool { self == .written || self == change }
}
