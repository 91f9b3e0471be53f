/// A document as it was when it was read.
public struct DocumentSnapshot: Sendable {
  /// The document's place.
  public let reference: DocumentReference
  /// The document; nil when there was none.
  public let document: FirestoreDocument?
  /// The time as of which the document was read.
  public let readTime: Timestamp

  init(reference: DocumentReference, document: FirestoreDocument?, readTime: Timestamp) {
    self.reference = reference
    self.document = document
    self.readTime = readTime
  }

  /// The document's own id.
  public var id: String { reference.id }

  /// Whether there was a document.
  public var exists: Bool { document != nil }

  /// The fields; empty when there was no document.
  public var fields: MapValue { document?.fields ?? [:] }

  /// When the document was created; nil when there was none.
  public var createTime: Timestamp? { document?.createTime }

  /// When the document was last changed; nil when there was none.
  public var updateTime: Timestamp? { document?.updateTime }

  /// The value at a path such as `address.city`; nil when there is none.
  public subscript(path: String) -> FirestoreValue? {
    guard let path = FieldPath(clientText: path) else { return nil }
    return fields[path]
  }

  /// The document as a Swift value.
  ///
  /// Throws `notFound` when there was no document, and `ValueCodingError` when it does not fit.
  public func data<T: Decodable>(as type: T.Type = T.self) throws -> T {
    guard let document else {
      throw FirestoreError(.notFound, "there is no document \(reference.path)")
    }
    return try ValueDecoder().decode(type, from: document.fields)
  }
}

/// The documents that a query found.
public struct QuerySnapshot: Sendable, RandomAccessCollection {
  /// The documents in the query's order; each exists.
  public let documents: [DocumentSnapshot]
  /// The time as of which the documents were read.
  public let readTime: Timestamp
  /// What is different from the snapshot before; in the first one every document is added.
  public let changes: [Change]

  /// What has become of one document since the snapshot before.
  public struct Change: Sendable {
    /// Whether a document came, changed or went.
    public enum Kind: Sendable, Hashable {
      case added, modified, removed
    }

    /// What has become of the document.
    public let kind: Kind
    /// The document; if it was removed, as the snapshot before had it.
    public let document: DocumentSnapshot
  }

  init(documents: [DocumentSnapshot], readTime: Timestamp, changes: [Change]? = nil) {
    self.documents = documents
    self.readTime = readTime
    self.changes = changes ?? documents.map { Change(kind: .added, document: $0) }
  }

  /// The position of the first document.
  public var startIndex: Int { documents.startIndex }
  /// The position after the last document.
  public var endIndex: Int { documents.endIndex }
  /// The document at a position.
  public subscript(position: Int) -> DocumentSnapshot { documents[position] }

  /// The documents as Swift values; throws for the first one that does not fit.
  public func data<T: Decodable>(as type: T.Type = T.self) throws -> [T] {
    try documents.map { try $0.data(as: type) }
  }
}
