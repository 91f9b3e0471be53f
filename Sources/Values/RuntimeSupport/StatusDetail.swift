/// A part of an error for programs, as `google.rpc` defines such parts.
package enum StatusDetail: Sendable, Hashable {
  /// `google.rpc.BadRequest`.
  case badRequest([FieldViolation])
  /// `google.rpc.ErrorInfo`, in the domain of Firestore.
  case errorInfo(reason: String, metadata: [String: String] = [:])
}

/// What is wrong with one field of a request.
package struct FieldViolation: Sendable, Hashable {
  /// The place of the field, such as `structured_query.limit`; nil at the root.
  package var field: String?
  package var description: String

  /// A complaint about a place.
  package init(field: String?, description: String) {
    self.field = field
    self.description = description
  }
}
