import DocumentModel
import RuntimeSupport

/// The limits of Firestore's Standard edition that the store enforces on names and values.
///
/// Listed under "Usage and limits" in Firestore's documentation.
package enum DocumentLimits {
  /// The size of a document by `StorageSize`, name included.
  package static let documentBytesMax = 1_048_576
  /// The size of one string or byte string.
  package static let valueBytesMax = 1_048_487
  /// The size of a collection's or document's id in UTF-8.
  package static let idBytesMax = 1500
  /// The size of one map key in UTF-8.
  package static let fieldNameBytesMax = 1500
  /// The size of a field path's canonical spelling.
  package static let fieldPathBytesMax = 1500
  /// The depth of nested maps and arrays, a field's own value counted.
  package static let nestingDepthMax = 20
  /// The collections in a document's path.
  package static let collectionDepthMax = 100
  /// Segments of a path in an update mask.
  package static let maskSegmentsMax = 20
  /// Elements of a vector.
  package static let vectorDimensionsMax = 2048
  /// Transforms of one document in one commit.
  package static let transformsPerDocumentMax = 500

  /// Refuses a document that is too large, name included.
  static func checkSize(
    of name: DocumentName,
    _ fields: [String: FirestoreValue]
  ) throws(StatusError) {
    let size = StorageSize.document(name, fields)
    guard size > documentBytesMax else { return }
    throw .invalidArgument(
      "Document '\(name)' cannot be written because its size (\(grouped(size)) bytes) exceeds "
        + "the maximum allowed size of \(grouped(documentBytesMax)) bytes."
    )
  }

  /// A number with commas between groups of three digits.
  private static func grouped(_ number: Int) -> String {
    var digits = String(number)
    var groups: [String] = []
    while digits.count > 3 {
      groups.insert(String(digits.suffix(3)), at: 0)
      digits.removeLast(3)
    }
    return ([digits] + groups).joined(separator: ",")
  }
}
