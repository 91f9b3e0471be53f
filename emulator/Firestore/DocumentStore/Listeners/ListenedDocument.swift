package import DocumentModel
import Synchronization

/// A document sent to many listeners and encoded once for all of them.
package final class ListenedDocument: Sendable {
  package let document: FirestoreDocument
  private let encoded = Mutex<[UInt8]?>(nil)

  init(_ document: FirestoreDocument) { self.document = document }

  /// Returns the document encoded by `encode`; every caller must pass the same function.
  package func encoded(by encode: (FirestoreDocument) -> [UInt8]) -> [UInt8] {
    encoded.withLock { encoded in
      if let encoded { return encoded }
      let bytes = encode(document)
      encoded = bytes
      return bytes
    }
  }
}

/// The change of one document with respect to one target.
enum ListenedChange: Sendable {
  /// The document belongs to the target.
  case member(ListenedDocument)
  /// The document exists but no longer belongs to the target.
  case former(ListenedDocument)
  /// The document no longer belongs to the target; its content need not be sent again.
  case departed(DocumentName)
  case deleted(DocumentName)

  var isMember: Bool {
    if case .member = self { true } else { false }
  }

  var name: DocumentName {
    switch self {
    case .member(let document), .former(let document): document.document.name
    case .departed(let name), .deleted(let name): name
    }
  }
}
