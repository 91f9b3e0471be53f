/// The limits of Firestore's Standard edition that the store enforces on names and values.
///
/// Listed under "Usage and limits" in Firestore's documentation.
package enum DocumentLimits {
  /// Of a document by `StorageSize`, name included.
  package static let documentBytesMax = 1_048_576
  /// Of one string or byte string.
  package static let valueBytesMax = 1_048_487
  /// Of a collection's or document's id in UTF-8.
  package static let idBytesMax = 1500
  /// Of one map key in UTF-8.
  package static let fieldNameBytesMax = 1500
  /// Of a field path's canonical spelling.
  package static let fieldPathBytesMax = 1500
  /// Maps and arrays inside one another, a field's own value counted.
  package static let nestingDepthMax = 20
  /// Collections on the way to a document.
  package static let collectionDepthMax = 100
  /// Segments of a path in an update mask.
  package static let maskSegmentsMax = 20
  /// Elements of a vector.
  package static let vectorDimensionsMax = 2048
  /// Transforms of one document in one commit.
  package static let transformsPerDocumentMax = 500
}
