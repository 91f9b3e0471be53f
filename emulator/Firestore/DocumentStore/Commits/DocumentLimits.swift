import DocumentModel
import StatusCodes

/// The limits of Firestore's Standard edition that the store enforces on names and values.
///
/// Listed under "Usage and limits" in Firestore's documentation.
package enum DocumentLimits {
  /// The maximum size of a document as computed by `StorageSize`, including its name.
  package static let documentBytesMax = 1_048_576
  /// The maximum size of one string or byte string.
  package static let valueBytesMax = 1_048_487
  /// The maximum size of a collection or document ID in UTF-8.
  package static let idBytesMax = 1500
  /// The maximum size of one map key in UTF-8.
  package static let fieldNameBytesMax = 1500
  /// The maximum size of a field path in its canonical spelling.
  package static let fieldPathBytesMax = 1500
  /// The maximum nesting depth of maps and arrays, counting the field's own value.
  package static let nestingDepthMax = 20
  /// The maximum size of a document's path in UTF-8, including the slashes between its IDs.
  package static let pathBytesMax = 6 << 10
  /// The maximum number of entries of one document in all automatic indexes together.
  package static let indexEntriesMax = 40_000
  /// The maximum number of collections in a document's path.
  package static let collectionDepthMax = 100
  /// The maximum number of segments of a path in an update mask.
  package static let maskSegmentsMax = 20
  /// The maximum number of elements of a vector.
  package static let vectorDimensionsMax = 2048
  /// The maximum number of transforms of one document in one commit.
  package static let transformsPerDocumentMax = 500

  /// Throws if a document is too large, including its name, or needs too many index entries.
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
    // A document of fewer bytes cannot have this many values.
    guard size > indexEntriesMax else { return }
    let entries = indexEntries(of: fields)
    guard entries <= indexEntriesMax else {
      throw .invalidArgument(
        "Document '\(name)' cannot be written because it has too many index entries "
          + "(\(grouped(entries))); at most \(grouped(indexEntriesMax)) are allowed."
      )
    }
  }

  /// Counts the index entries of a document.
  ///
  /// Each field, also in nested maps, needs two entries; an array needs one for each distinct
  /// element.
  private static func indexEntries(of fields: MapValue) -> Int {
    fields.values.reduce(0) { sum, value in
      switch value {
      case .map(let fields): sum + indexEntries(of: fields)
      case .array(let elements): sum + Set(elements).count
      default: sum + 2
      }
    }
  }

  /// Formats a number with commas between groups of three digits.
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
