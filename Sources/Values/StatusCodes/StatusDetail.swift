/// A machine-readable part of an error, as defined in `google.rpc`.
package enum StatusDetail: Sendable, Hashable {
  /// `google.rpc.BadRequest`.
  case badRequest([FieldViolation])
  /// `google.rpc.ErrorInfo` in Firestore's domain.
  case errorInfo(reason: String, metadata: [String: String] = [:])
}

/// A problem with one field of a request.
package struct FieldViolation: Sendable, Hashable {
  /// The path of the field, such as `structured_query.limit`; nil at the root.
  package var field: String?
  package var description: String

  package init(field: String?, description: String) {
    self.field = field
    self.description = description
  }
}
