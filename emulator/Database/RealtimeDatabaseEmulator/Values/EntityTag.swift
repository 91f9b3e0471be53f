import DatabaseModel
import DatabaseTree

/// The tag of a value, by which conditional requests compare it.
enum EntityTag {
  /// Returns the tag of a value; equal values have equal tags.
  static func of(_ node: DatabaseNode) -> String {
    node.isEmpty ? "null_etag" : node.clientHash
  }
}
