package import DocumentModel
package import RuntimeSupport
import Synchronization

/// What a listener wants to be told of.
package enum ListenTarget: Sendable, Hashable {
  /// The results of a query; its projection has no meaning here.
  case query(Query)
  /// Documents, existing or not.
  case documents([DocumentName])
}

/// From where a listener that was connected before goes on.
package enum ResumePoint: Sendable, Hashable {
  /// A token of an earlier stream, as it came from the client.
  case token([UInt8])
  /// A time at which the listener knew the target's documents.
  case readTime(Timestamp)
}

/// A client's wish to listen to one target.
package struct ListenRequest: Sendable, Hashable {
  package var target: ListenTarget
  package var resumePoint: ResumePoint?
  /// How many documents the client says the target had at the resume point.
  package var expectedCount: Int?
  /// Whether the target is removed once its documents were told.
  package var isOnce: Bool

  /// A wish to listen to `target` until it is removed.
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

/// What a listener is told; the order and meaning are those of `ListenResponse`.
package enum ListenEvent: Sendable {
  /// A target was taken on; its documents follow.
  case added(Int32)
  /// A target has ended, by the client's wish or because of an error.
  case removed(Int32, cause: StatusError?)
  /// Whatever the client knows of a target is to be forgotten; its documents follow.
  case reset(Int32)
  /// All documents of a target were told.
  case current(Int32, readTime: Timestamp, token: [UInt8])
  /// All targets that are current are told as of this time, which never goes back.
  ///
  /// The token is empty while a target is not current.
  case snapshot(readTime: Timestamp, token: [UInt8])
  /// A document exists; it belongs to some targets and no longer to others.
  case document(ListenedDocument, targets: [Int32], removedTargets: [Int32])
  /// A document does not exist.
  case deleted(DocumentName, removedTargets: [Int32], readTime: Timestamp)
  /// A document no longer belongs to some targets.
  case departed(DocumentName, removedTargets: [Int32], readTime: Timestamp)
  /// How many documents a target has, and which.
  case filter(Int32, count: Int, names: BloomFilter)
}

/// A document that many listeners are told of, which is encoded once for all of them.
package final class ListenedDocument: Sendable {
  package let document: FirestoreDocument
  private let encoded = Mutex<[UInt8]?>(nil)

  init(_ document: FirestoreDocument) { self.document = document }

  /// What `encode` makes of the document; every caller passes the same function.
  package func encoded(by encode: (FirestoreDocument) -> [UInt8]) -> [UInt8] {
    encoded.withLock { encoded in
      if let encoded { return encoded }
      let bytes = encode(document)
      encoded = bytes
      return bytes
    }
  }
}

/// What has become of one document in one target.
enum ListenedChange: Sendable {
  /// The document belongs to the target.
  case member(ListenedDocument)
  /// The document exists but belongs no longer to the target.
  case former(ListenedDocument)
  /// The document, which need not be told again, belongs no longer to the target.
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
