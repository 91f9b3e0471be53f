import DocumentModel
import FirestoreProtos
import FirestoreWire
import RuntimeSupport
import SwiftProtobuf

/// A document on one line, as Firestore's REST surface writes it.
enum DocumentLine {
  /// A document of a mebibyte may take several times that as JSON.
  static let bytesMax = 32 << 20

  /// The line, without its end; equal documents have equal lines.
  static func bytes(_ document: Document) throws -> [UInt8] {
    var options = JSONEncodingOptions()
    options.useDeterministicOrdering = true
    return try WireFormat.proto(document).jsonUTF8Bytes(options: options)
  }
}
