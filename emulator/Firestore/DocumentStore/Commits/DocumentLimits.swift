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
  /// The size of a document's path in UTF-8, with the slashes between its ids.
  package static let pathBytesMax = 6 << 10
  /// The entries that one document has in all automatic indexes together.
  package static let indexEntriesMax = 40_000
  /// The collections in a document's path.
  package static let collectionDepthMax = 100
  /// Segments of a path in an update mask.
  package static let maskSegmentsMax = 20
  /// Elements of a vector.
  package static let vectorDimensionsMax = 2048
  /// Transforms of one document in one commit.
  package static let transformsPerDocumentMax = 500

  /// Refuses a document that is too large, name included, or needs too many index entries.
  static func check(
    _ name: DocumentName,
    _ fields: MapValue
  ) throws(StatusError) {
    let size = StorageSize.document(name, fields)
    guard size <= documentBytesMax else {
      throw .invalidArgument(
        "Document '\(name)' cannot be written because its size (\(grouped(size)) bytes) exceeds "
          + "the maximum allowed size of \(grouped(documentBytesMax)) bytes."
      )
    }
    // Fewer bytes cannot hold as many values.
    guard size > indexEntriesMax else { return }
    let entries = indexEntries(of: fields)
    guard entries <= indexEntriesMax else {
      throw .invalidArgument(
        "Document '\(name)' cannot be written because it has too many index entries "
          + "(\(grouped(entries))); at most \(grouped(indexEntriesMax)) are allowed."
      )
    }
  }

  /// Two entries for each field, in maps too, and one for each distinct element of an array.
  private static func indexEntries(of fields: MapValue) -> Int {
    fields.values.reduce(0) { sum, value in
      switch value {
      case .map(let fields): sum + indexEntries(of: fields)
      case .array(let elements): sum + Set(elements).count
      default: sum + 2
      }
    }
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
