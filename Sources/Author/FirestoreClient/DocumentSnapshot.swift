/// The state of a document when it was read.
public struct DocumentSnapshot: Sendable {
  /// The reference from which the document was read.
  public let reference: DocumentReference
  /// The document; nil if it did not exist.
  public let document: FirestoreDocument?
  /// The time as of which the document was read.
  public let readTime: Timestamp

  init(reference: DocumentReference, document: FirestoreDocument?, readTime: Timestamp) {
    self.reference = reference
    self.document = document
    self.readTime = readTime
  }

  /// The last segment of the document's path.
  public var id: String { reference.id }

  /// True if the document existed when it was read.
  public var exists: Bool { document != nil }

  /// The fields; empty if the document did not exist.
  public var fields: MapValue { document?.fields ?? [:] }

  /// The time at which the document was created; nil if it did not exist.
  public var createTime: Timestamp? { document?.createTime }

  /// The time at which the document was last changed; nil if it did not exist.
  public var updateTime: Timestamp? { document?.updateTime }

  /// The value at a path such as `address.city`; nil if there is none or the path is invalid.
  public subscript(path: String) -> FirestoreValue? {
    guard let path = FieldPath(clientText: path) else { return nil }
    return fields[path]
  }

  /// The value at a path; nil if there is none.
  public subscript(path: FieldPath) -> FirestoreValue? { fields[path] }

  /// Decodes the document as a Swift value.
  ///
  /// Throws `FirestoreError` `notFound` if the document did not exist, and `ValueCodingError` if it
  /// does not decode, which names the document and the field.
  public func data<T: Decodable>(as type: T.Type = T.self) throws -> T {
    guard let document else {
      throw FirestoreError(.notFound, "there is no document \(reference.path)")
    }
    do {
      return try ValueDecoder().decode(type, from: document.fields)
    } catch var error as ValueCodingError {
      error.document = "\(reference.path)"
      throw error
    }
  }
}

/// The documents that match a query, as of one moment.
public struct QuerySnapshot: Sendable, RandomAccessCollection {
  /// The documents in the order of the query, all of which exist.
  public let documents: [DocumentSnapshot]
  /// The time as of which the documents were read.
  public let readTime: Timestamp
  /// The differences from the previous snapshot.
  ///
  /// In the first snapshot every document is added.
  public let changes: [Change]

  /// A change of one document since the previous snapshot.
  public struct Change: Sendable {
    /// The kinds of changes of a query's result.
    public enum Kind: Sendable, Hashable {
      case added, modified, removed
    }

    /// The kind of the change.
    public let kind: Kind
    /// The document.
    ///
    /// If it was removed, its state in the previous snapshot.
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

  /// Decodes the documents as Swift values; throws for the first document that does not decode.
  public func data<T: Decodable>(as type: T.Type = T.self) throws -> [T] {
    try documents.map { try $0.data(as: type) }
  }
}
