/// A change of a field that is computed from its stored value.
package struct FieldTransform: Sendable, Hashable {
  package var path: FieldPath
  package var kind: Kind

  /// Creates a transform of the field at `path`.
  package init(_ path: FieldPath, _ kind: Kind) {
    self.path = path
    self.kind = kind
  }

  /// The computation of a transform.
  package enum Kind: Sendable, Hashable {
    case requestTime
    /// The operand must be a number; the store refuses any other value with `INVALID_ARGUMENT`.
    case increment(FirestoreValue)
    case maximum(FirestoreValue)
    case minimum(FirestoreValue)
    case appendMissingElements([FirestoreValue])
    case removeAllFromArray([FirestoreValue])
  }
}
