package import DocumentModel
package import StatusCodes

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
