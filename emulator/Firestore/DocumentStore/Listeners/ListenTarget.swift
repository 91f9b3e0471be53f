package import DocumentModel
package import StatusCodes
import Synchronization

/// The subject of a listener: a query or a set of documents.
package enum ListenTarget: Sendable, Hashable {
  /// The results of a query; its projection is ignored.
  case query(Query)
  /// Documents, whether they exist or not.
  case documents([DocumentName])
}

/// The point from which a reconnecting listener resumes.
package enum ResumePoint: Sendable, Hashable {
  /// A token of an earlier stream, as sent by the client.
  case token([UInt8])
  /// A time as of which the listener had the target's documents.
  case readTime(Timestamp)
}

/// A client's request to listen to one target.
package struct ListenRequest: Sendable, Hashable {
  package var target: ListenTarget
  package var resumePoint: ResumePoint?
  /// The number of documents that the target had at the resume point, according to the client.
  package var expectedCount: Int?
  /// True if the target is removed once its documents have been sent.
  package var isOnce: Bool

  /// Creates a request to listen to `target` until it is removed.
  package init(
    _ target: ListenTarget,
    resumePoint: ResumePoint? = nil,
    expectedCount: Int? = nil,
    isOnce: Bool = false
  ) {
    self.target = target
    self.resumePoint = resumePoint
    self.expectedCount = expectedCount
    self.isOnce = isOnce
  }
}

/// An event for a listener; order and meaning are those of `ListenResponse`.
package enum ListenEvent: Sendable {
  /// A target was added; its documents follow.
  case added(Int32)
  /// A target has ended, at the client's request or because of an error.
  case removed(Int32, cause: StatusError?)
  /// The client must discard a target's documents; new ones follow.
  case reset(Int32)
  /// All documents of a target have been sent.
  case current(Int32, readTime: Timestamp, token: [UInt8])
  /// All current targets are consistent as of this time, which never goes back.
  ///
  /// The token is empty while some target is not current.
  case snapshot(readTime: Timestamp, token: [UInt8])
  /// A document exists; it belongs to `targets` and no longer to `removedTargets`.
  case document(ListenedDocument, targets: [Int32], removedTargets: [Int32])
  /// A document does not exist.
  case deleted(DocumentName, removedTargets: [Int32], readTime: Timestamp)
  /// A document no longer belongs to some targets.
  case departed(DocumentName, removedTargets: [Int32], readTime: Timestamp)
  /// The number and names of a target's documents.
  case filter(Int32, count: Int, names: BloomFilter)
}

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
