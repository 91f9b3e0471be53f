import DocumentModel
import StatusCodes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The error for a query that production refuses for lack of an index.
///
/// The message is production's, with a link to its console or the command that creates the index.
/// It is followed by the definition for `firestore.indexes.json`.
struct MissingIndexError: StatusConvertible, Equatable {
  let database: DatabaseName
  let index: CompositeIndex
  /// True if several fields have ranges; production's message then refers to its documentation.
  let hasManyRanges: Bool

  var statusCode: StatusCode { .failedPrecondition }

  var statusMessage: String {
    "\(words)\nOr add it to the \(index.isOverride ? "fieldOverrides" : "indexes") of "
      + "firestore.indexes.json: \(index.json)"
  }

  /// Production's message.
  private var words: String {
    if index.isOfVectors {
      return "Missing vector index configuration. Please create the required index with the "
        + "following gcloud command: \(command)"
    }
    let folder =
      database.database == "(default)"
      ? "firestore" : "firestore/databases/\(database.database)"
    let link =
      "You can create it here: https://console.firebase.google.com/v1/r/project/"
      + "\(database.project)/\(folder)/indexes?"
    if index.isOfOneField, let field = index.fields.first {
      let scope = index.scope == .group ? "COLLECTION_GROUP" : "COLLECTION"
      return "The query requires a \(scope)_\(Self.name(of: field.kind)) index for collection "
        + "\(index.collectionID) and field \(field.path). \(link)create_exemption=\(token)"
    }
    return "The query requires an index. \(link)create_composite=\(token)"
      + (hasManyRanges
        ? " .\nThe query contains range and inequality filters on multiple fields, please refer to "
          + "the documentation for index selection best practices: "
          + "https://cloud.google.com/firestore/docs/query-data/multiple-range-fields."
        : "")
  }

  private static func name(of kind: CompositeIndex.Field.Kind) -> String {
    switch kind {
    case .ascending: "ASC"
    case .descending: "DESC"
    case .contains: "CONTAINS"
    case .vector: "VECTOR"
    }
  }

  /// The `gcloud` command that creates a vector index.
  private var command: String {
    let fields = index.fields.map { field in
      switch field.kind {
      case .ascending: "--field-config=order=ASCENDING,field-path=\(field.path)"
      case .descending: "--field-config=order=DESCENDING,field-path=\(field.path)"
      case .contains: "--field-config=array-config=CONTAINS,field-path=\(field.path)"
      case .vector(let dimension):
        #"--field-config=vector-config='{"dimension":"\#(dimension)","flat": "{}"}',field-path="#
          + "\(field.path)"
      }
    }
    let scope = index.scope == .group ? "COLLECTION_GROUP" : "COLLECTION"
    return "gcloud firestore indexes composite create --project=\(database.project)"
      + (database.database == "(default)" ? "" : " --database=\(database.database)")
      + " --collection-group=\(index.collectionID) --query-scope=\(scope) "
      + fields.joined(separator: " ")
  }

  /// The index as a message of `google.firestore.admin.v1`, in URL-safe base64 without padding.
  private var token: String {
    let isOfOneField = index.isOfOneField
    let place = isOfOneField ? "fields/\(index.fields[0].path)" : "indexes/_"
    let name = "\(database)/collectionGroups/\(index.collectionID)/\(place)"
    var bytes = Self.field(1, Array(name.utf8)) + [2 << 3, index.scope == .group ? 2 : 1]
    for field in index.fields {
      bytes += Self.field(3, Self.field(1, Array(field.path.description.utf8)) + Self.kind(field))
    }
    if !isOfOneField {
      let name = Self.field(1, Array("__name__".utf8))
      bytes += Self.field(3, name + [2 << 3, index.nameDescending ? 2 : 1])
    }
    return Data(bytes).base64EncodedString()
      .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  private static func kind(_ field: CompositeIndex.Field) -> [UInt8] {
    switch field.kind {
    case .ascending: [2 << 3, 1]
    case .descending: [2 << 3, 2]
    case .contains: [3 << 3, 1]
    case .vector(let dimension):
      Self.field(4, [1 << 3] + varint(UInt64(dimension)) + Self.field(2, []))
    }
  }

  private static func field(_ number: UInt8, _ content: [UInt8]) -> [UInt8] {
    [number << 3 | 2] + varint(UInt64(content.count)) + content
  }

  private static func varint(_ number: UInt64) -> [UInt8] {
    var rest = number
    var bytes: [UInt8] = []
    while rest > 0x7F {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }
}
