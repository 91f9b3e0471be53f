import DocumentModel
import RuntimeSupport

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A query that production refuses for want of an index.
///
/// The text is production's, with a link to its console that creates the index, and then the
/// definition for `firestore.indexes.json`.
struct MissingIndexError: StatusConvertible, Equatable {
  let database: DatabaseName
  let index: CompositeIndex

  var statusCode: StatusCode { .failedPrecondition }

  var statusMessage: String {
    let folder =
      database.database == "(default)"
      ? "firestore" : "firestore/databases/\(database.database)"
    return "The query requires an index. You can create it here: "
      + "https://console.firebase.google.com/v1/r/project/\(database.project)/\(folder)/indexes"
      + "?create_composite=\(token)\nOr add it to the \(index.isOverride ? "fieldOverrides" : "indexes") "
      + "of firestore.indexes.json: \(index.json)"
  }

  /// The index as a message of `google.firestore.admin.v1`, in URL-safe base64 without padding.
  private var token: String {
    let group = "\(database)/collectionGroups/\(index.collectionID)/indexes/_"
    var bytes = Self.field(1, Array(group.utf8)) + [2 << 3, index.scope == .group ? 2 : 1]
    for field in index.fields {
      bytes += Self.field(3, Self.field(1, Array(field.path.description.utf8)) + Self.kind(field))
    }
    if !index.isOfVectors {
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
