import DocumentModel
import FirestoreProtos
import FirestoreWire
import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The calls of the client in terms of the document model, including their retries.
struct FirestoreCalls: Sendable {
  let transport: any FirestoreTransport
  var identity: CallIdentity
  let retries: CallRetries
  let makeID: @Sendable () -> String

  // MARK: Documents

  func get(
    _ references: [DocumentReference],
    of firestore: Firestore,
    transaction: [UInt8]?
  ) async throws -> [DocumentSnapshot] {
    guard !references.isEmpty else { return [] }
    let names = try references.map { try $0.validName() }
    let request = Google_Firestore_V1_BatchGetDocumentsRequest.with {
      $0.database = firestore.database.description
      // The server returns each name once, regardless of how often it is requested.
      $0.documents = Set(names).map(\.description)
      if let transaction { $0.transaction = Data(transaction) }
    }
    let answers = try await retries.run(isIdempotent: true) {
      try await identity.authorize { try await transport.batchGetDocuments(request, as: $0) }
    }
    // Names are compared by their bytes: canonically equivalent ones are equal Swift strings.
    var found: [[UInt8]: (document: FirestoreDocument?, readTime: Timestamp)] = [:]
    for answer in answers {
      switch answer.result {
      case .found(let proto):
        found[Array(proto.name.utf8)] = (
          try read { try WireFormat.document(proto) }, try time(answer.readTime)
        )
      case .missing(let name): found[Array(name.utf8)] = (nil, try time(answer.readTime))
      case nil: break
      }
    }
    return try zip(references, names).map { reference, name in
      guard let answer = found[Array(name.description.utf8)] else {
        throw FirestoreError(.internal, "the server did not answer for \(name.path)")
      }
      return DocumentSnapshot(
        reference: reference,
        document: answer.document,
        readTime: answer.readTime
      )
    }
  }

  func commit(
    _ writes: [Write],
    database: DatabaseName,
    transaction: [UInt8]? = nil
  ) async throws -> CommitResult {
    let request = Google_Firestore_V1_CommitRequest.with {
      $0.database = database.description
      $0.writes = writes.map(WireFormat.proto)
      if let transaction { $0.transaction = Data(transaction) }
    }
    let bearsContention = transaction == nil
    let answer = try await retries.run(isIdempotent: false, bearsContention: bearsContention) {
      try await identity.authorize { try await transport.commit(request, as: $0) }
    }
    return CommitResult(
      commitTime: try time(answer.commitTime),
      writeResults: try answer.writeResults.map { proto in
        WriteResult(
          updateTime: proto.hasUpdateTime ? try time(proto.updateTime) : nil,
          transformResults: try read { try proto.transformResults.map(WireFormat.value) }
        )
      }
    )
  }

  // MARK: Transactions

  func begin(_ database: DatabaseName, _ kind: TransactionKind) async throws -> [UInt8] {
    let request = Google_Firestore_V1_BeginTransactionRequest.with {
      $0.database = database.description
      switch kind {
      case .readWrite(let retried):
        $0.options.readWrite = .with { if let retried { $0.retryTransaction = Data(retried) } }
      case .readOnly(let readTime):
        $0.options.readOnly = .with {
          if let readTime { $0.readTime = WireFormat.proto(readTime) }
        }
      }
    }
    let answer = try await retries.run(isIdempotent: true) {
      try await identity.authorize { try await transport.beginTransaction(request, as: $0) }
    }
    return Array(answer.transaction)
  }

  func rollback(_ database: DatabaseName, transaction: [UInt8]) async throws {
    let request = Google_Firestore_V1_RollbackRequest.with {
      $0.database = database.description
      $0.transaction = Data(transaction)
    }
    try await identity.authorize { try await transport.rollback(request, as: $0) }
  }

  // MARK: Queries

  func run(
    _ query: Query,
    of firestore: Firestore,
    transaction: [UInt8]?
  ) async throws -> QuerySnapshot {
    let request = Google_Firestore_V1_RunQueryRequest.with {
      $0.parent = WireFormat.parent(of: query)
      $0.structuredQuery = WireFormat.proto(query)
      if let transaction { $0.transaction = Data(transaction) }
    }
    let answers = try await retries.run(isIdempotent: true) {
      try await identity.authorize { try await transport.runQuery(request, as: $0) }
    }
    var readTime = Timestamp(microseconds: 0)
    var documents: [DocumentSnapshot] = []
    for answer in answers {
      if answer.hasReadTime { readTime = try time(answer.readTime) }
      guard answer.hasDocument else { continue }
      let document = try read { try WireFormat.document(answer.document) }
      documents.append(
        DocumentSnapshot(
          reference: firestore.document(document.name),
          document: document,
          readTime: readTime
        )
      )
    }
    return QuerySnapshot(documents: documents, readTime: readTime)
  }

  func count(_ query: Query, transaction: [UInt8]?) async throws -> Int {
    let request = Google_Firestore_V1_RunAggregationQueryRequest.with {
      $0.parent = WireFormat.parent(of: query)
      $0.structuredAggregationQuery.structuredQuery = WireFormat.proto(query)
      $0.structuredAggregationQuery.aggregations = [
        .with {
          $0.alias = "count"
          $0.count = .init()
        }
      ]
      if let transaction { $0.transaction = Data(transaction) }
    }
    let answers = try await retries.run(isIdempotent: true) {
      try await identity.authorize { try await transport.runAggregationQuery(request, as: $0) }
    }
    for answer in answers where answer.hasResult {
      if let count = answer.result.aggregateFields["count"] { return Int(count.integerValue) }
    }
    throw FirestoreError(.internal, "the server did not answer with a count")
  }

  // MARK: Lists

  /// The maximum number of pages.
  ///
  /// A document has few collections, so more pages indicate a loop.
  private static let collectionPagesMax = 1000

  func listCollectionIDs(database: DatabaseName, parent: ResourcePath) async throws -> [String] {
    var ids: [String] = []
    var request = Google_Firestore_V1_ListCollectionIdsRequest()
    request.parent = WireFormat.parent(database: database, path: parent)
    for _ in 0..<Self.collectionPagesMax {
      let answer = try await retries.run(isIdempotent: true) { [request] in
        try await identity.authorize { try await transport.listCollectionIDs(request, as: $0) }
      }
      ids += answer.collectionIds
      request.pageToken = answer.nextPageToken
      if answer.nextPageToken.isEmpty { return ids }
    }
    throw FirestoreError(.outOfRange, "\(parent) has too many collections to list")
  }

  func listDocuments(
    _ collection: CollectionReference,
    pageSize: Int,
    pageToken: String?
  ) async throws -> DocumentPage {
    let path = try collection.validPath()
    let request = Google_Firestore_V1_ListDocumentsRequest.with {
      $0.parent = WireFormat.parent(
        database: collection.firestore.database,
        path: path.parent
      )
      $0.collectionID = collection.id
      $0.pageSize = Int32(clamping: pageSize)
      $0.pageToken = pageToken ?? ""
      $0.showMissing = true
      // The mask requests only the names of the documents.
      $0.mask.fieldPaths = ["__name__"]
    }
    let answer = try await retries.run(isIdempotent: true) {
      try await identity.authorize { try await transport.listDocuments(request, as: $0) }
    }
    return DocumentPage(
      references: try answer.documents.map { proto in
        collection.firestore.document(try read { try WireFormat.documentName(proto.name) })
      },
      nextPageToken: answer.nextPageToken.isEmpty ? nil : answer.nextPageToken
    )
  }

  //MARK: Reading responses

  private func read<Output>(_ convert: () throws -> Output) throws -> Output {
    do {
      return try convert()
    } catch {
      throw FirestoreError(.internal, "the server's answer cannot be read: \(error)")
    }
  }

  private func time(_ proto: Google_Protobuf_Timestamp) throws -> Timestamp {
    try read { try WireFormat.timestamp(proto) }
  }
}

/// The kind of a transaction.
enum TransactionKind: Sendable {
  /// A transaction with locks. It takes the place in the queue of the attempt with the given id.
  case readWrite(retrying: [UInt8]?)
  case readOnly(at: Timestamp?)
}
