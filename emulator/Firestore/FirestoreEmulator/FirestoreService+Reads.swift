import DocumentModel
import DocumentStore
package import FirestoreProtos
package import FirestoreWire
package import Identity
import StatusCodes
import SwiftProtobuf

extension FirestoreService {
  /// Reads one document; throws `NOT_FOUND` if it is missing.
  package func getDocument(
    _ request: Google_Firestore_V1_GetDocumentRequest,
    auth: AuthContext
  ) async throws -> DocumentReply {
    let name = try documentName(request.name)
    let consistency: ReadConsistency =
      switch request.consistencySelector {
      case .transaction(let id): .transaction(TransactionID(id))
      case .readTime(let time): .readTime(try WireFormat.commitTimestamp(time))
      case nil: .latest
      }
    let result = try await store.lookUp(
      [name],
      mask: request.hasMask ? try WireFormat.mask(request.mask) : nil,
      at: consistency,
      auth: auth
    )
    guard let document = result.documents.first?.document else {
      throw StatusError(.notFound, "Document \"\(name)\" not found.")
    }
    return DocumentReply(document)
  }

  /// Reads documents as of one time, each name once; missing documents are part of the response.
  package func batchGetDocuments(
    _ request: Google_Firestore_V1_BatchGetDocumentsRequest,
    auth: AuthContext
  ) async throws -> StreamReplies<LookUpReply> {
    let database = try database(request.database)
    var names: [DocumentName] = []
    var seen: Set<DocumentName> = []
    for text in request.documents {
      let name = try documentName(text, in: database)
      if seen.insert(name).inserted { names.append(name) }
    }
    let mask = request.hasMask ? try WireFormat.mask(request.mask) : nil
    let consistency: ReadConsistency
    switch request.consistencySelector {
    case .transaction(let id): consistency = .transaction(TransactionID(id))
    case .newTransaction(let options):
      let options = try readingOptions(options)
      // Without documents there is nothing to read, but the client wants its transaction.
      if names.isEmpty { return try await onlyTransaction(options, database, auth) }
      consistency = .newTransaction(options)
    case .readTime(let time): consistency = .readTime(try WireFormat.commitTimestamp(time))
    case nil: consistency = .latest
    }
    if names.isEmpty { return StreamReplies(count: 0) { _ in .init() } }

    let result: LookUpResult
    if names.count > Self.quickNamesMax, !consistency.isInTransaction {
      result = try await gather {
        try await store.lookUp(names, mask: mask, at: consistency, auth: auth)
      }
    } else {
      result = try await store.lookUp(names, mask: mask, at: consistency, auth: auth)
    }
    let lead = result.newTransaction == nil ? 0 : 1
    let count = lead + result.documents.count
    // A single document takes no more memory than what is queued on its stream anyway.
    let heldBytes = count == 1 ? 0 : result.storedBytes
    return StreamReplies(
      count: count,
      newTransaction: result.newTransaction,
      heldBytes: heldBytes
    ) { index in
      var reply = LookUpReply()
      guard index >= lead else {
        reply.transaction = result.newTransaction?.bytes ?? []
        return reply
      }
      let (name, document) = result.documents[index - lead]
      reply.result = document.map { .found($0) } ?? .missing(name)
      reply.readTime = result.readTime
      return reply
    }
  }

  /// The maximum number of documents looked up without waiting for other large responses.
  private static let quickNamesMax = 4

  /// Lists a collection's documents page by page.
  package func listDocuments(
    _ request: Google_Firestore_V1_ListDocumentsRequest,
    auth: AuthContext
  ) async throws -> Google_Firestore_V1_ListDocumentsResponse {
    // A read in a transaction may wait for locks, so it must not hold a permit.
    if case .transaction = request.consistencySelector { return try await list(request, auth) }
    return try await gather { try await list(request, auth) }
  }

  private func list(
    _ request: Google_Firestore_V1_ListDocumentsRequest,
    _ auth: AuthContext
  ) async throws -> Google_Firestore_V1_ListDocumentsResponse {
    let (database, parent) = try parent(request.parent)
    if !request.collectionID.isEmpty { try WireFormat.checkCollectionID(request.collectionID) }
    guard request.pageSize >= 0 else {
      throw StatusError.invalidArgument("Page size must be nonnegative.")
    }
    let orders = try WireFormat.orders(clause: request.orderBy)
    guard orders.isEmpty || !request.showMissing else {
      throw StatusError.invalidArgument("cannot specify an order when show_missing is true")
    }
    let consistency: ReadConsistency =
      switch request.consistencySelector {
      case .transaction(let id): .transaction(TransactionID(id))
      case .readTime(let time): .readTime(try WireFormat.commitTimestamp(time))
      case nil: .latest
      }
    let page = try await store.listDocuments(
      parent: parent,
      collectionID: request.collectionID.isEmpty ? nil : request.collectionID,
      database: database,
      pageSize: Int(request.pageSize),
      pageToken: request.pageToken.isEmpty ? nil : request.pageToken,
      orders: orders,
      mask: request.hasMask ? try WireFormat.mask(request.mask) : nil,
      showMissing: request.showMissing,
      at: consistency,
      auth: auth
    )
    // A page has megabytes, and each step from here on takes long.
    try Task.checkCancellation()
    let response = Google_Firestore_V1_ListDocumentsResponse.with {
      $0.documents = page.documents.map { listed in
        listed.document.map { WireFormat.proto($0) } ?? .with { $0.name = listed.name.description }
      }
      $0.nextPageToken = page.nextPageToken ?? ""
    }
    try Task.checkCancellation()
    return response
  }

  /// Lists the IDs of the collections directly below a document or the root, page by page.
  package func listCollectionIDs(
    _ request: Google_Firestore_V1_ListCollectionIdsRequest,
    auth: AuthContext
  ) async throws -> Google_Firestore_V1_ListCollectionIdsResponse {
    let (database, parent) = try parent(request.parent)
    guard request.pageSize >= 0 else {
      throw StatusError.invalidArgument("page_size must be greater than or equal to zero.")
    }
    let consistency: ReadConsistency =
      switch request.consistencySelector {
      case .readTime(let time): .readTime(try WireFormat.commitTimestamp(time))
      case nil: .latest
      }
    let page = try await store.listCollectionIDs(
      parent: parent,
      database: database,
      pageSize: Int(request.pageSize),
      pageToken: request.pageToken.isEmpty ? nil : request.pageToken,
      at: consistency,
      auth: auth
    )
    return .with {
      $0.collectionIds = page.collectionIDs
      $0.nextPageToken = page.nextPageToken ?? ""
    }
  }

  private func onlyTransaction(
    _ options: TransactionOptions,
    _ database: DatabaseName,
    _ auth: AuthContext
  ) async throws -> StreamReplies<LookUpReply> {
    let id = try await store.begin(options, database: database, auth: auth)
    return StreamReplies(count: 1, newTransaction: id) { _ in
      var reply = LookUpReply()
      reply.transaction = id.bytes
      return reply
    }
  }
}

extension ReadConsistency {
  /// True if the read may wait for other transactions' locks.
  var isInTransaction: Bool {
    switch self {
    case .transaction, .newTransaction: true
    case .latest, .readTime: false
    }
  }
}
