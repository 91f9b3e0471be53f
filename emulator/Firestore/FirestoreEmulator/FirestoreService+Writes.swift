import DocumentModel
import DocumentStore
package import FirestoreProtos
import FirestoreWire
package import Identity
import StatusCodes
package import SwiftProtobuf

extension FirestoreService {
  /// Creates a document, with a generated ID if the client sends none.
  package func createDocument(
    _ request: Google_Firestore_V1_CreateDocumentRequest,
    auth: AuthContext
  ) async throws -> Google_Firestore_V1_Document {
    let (database, parent) = try parent(request.parent)
    guard !request.collectionID.isEmpty else {
      throw StatusError.invalidArgument("collectionId is the empty string.")
    }
    try WireFormat.checkCollectionID(request.collectionID)
    guard request.document.name.isEmpty else {
      throw StatusError.invalidArgument("document.name must not be set")
    }
    let id = request.documentID.isEmpty ? makeID() : request.documentID
    try WireFormat.checkDocumentID(id)
    let name = DocumentName(
      database: database,
      path: parent.appending(request.collectionID).appending(id)
    )
    let fields = try WireFormat.fields(request.document.fields)
    let mask = try answerMask(request.hasMask, request.mask)
    let result = try await store.commit(
      [
        Write(
          .update(name, fields: fields, mask: nil, transforms: []),
          precondition: .exists(false)
        )
      ],
      database: database,
      transaction: nil,
      auth: auth
    )
    let document = FirestoreDocument(
      name: name,
      fields: fields.keeping(mask),
      createTime: result.commitTime,
      updateTime: result.commitTime
    )
    return WireFormat.proto(document)
  }

  /// Updates a document, or creates it if no precondition forbids that.
  ///
  /// For a user who may not `get` the document, the response has only the fields of the update
  /// mask.
  package func updateDocument(
    _ request: Google_Firestore_V1_UpdateDocumentRequest,
    auth: AuthContext
  ) async throws -> Google_Firestore_V1_Document {
    let name = try documentName(request.document.name)
    let mask = try answerMask(request.hasMask, request.mask)
    let write = Write(
      .update(
        name,
        fields: try WireFormat.fields(request.document.fields),
        mask: request.hasUpdateMask ? try WireFormat.mask(request.updateMask) : nil,
        transforms: []
      ),
      precondition: try WireFormat.precondition(request.currentDocument)
    )
    let result = try await store.commit(
      [write],
      database: name.database,
      transaction: nil,
      auth: auth
    )
    // The response is the document as this commit left it, regardless of later commits.
    func stored(_ auth: AuthContext, _ mask: [FieldPath]?) async throws -> FirestoreDocument? {
      func read(_ time: ReadConsistency) async throws -> FirestoreDocument? {
        try await store.lookUp([name], mask: mask, at: time, auth: auth).documents.first?.document
      }
      do { return try await read(.readTime(result.commitTime)) } catch let error as StatusError
        where error == DocumentDatabase.tooOld
      {
        // An import has removed the state after the commit.
        return try await read(.latest)
      }
    }
    let document: FirestoreDocument?
    if case .update(_, _, .some(let written), _) = write.operation {
      do { document = try await stored(auth, mask) } catch let error as StatusError
        where error.statusCode == .permissionDenied
      {
        document = try await stored(.admin, written)?.masked(by: mask)
      }
    } else {
      // All fields come from the client.
      document = try await stored(.admin, mask)
    }
    guard let document else {
      throw StatusError(.aborted, "The database was reset during the update.")
    }
    return WireFormat.proto(document)
  }

  /// Deletes a document; a missing document is not an error.
  package func deleteDocument(
    _ request: Google_Firestore_V1_DeleteDocumentRequest,
    auth: AuthContext
  ) async throws -> Google_Protobuf_Empty {
    let name = try documentName(request.name)
    let precondition = try WireFormat.precondition(request.currentDocument)
    _ = try await store.commit(
      [Write(.delete(name), precondition: precondition)],
      database: name.database,
      transaction: nil,
      auth: auth
    )
    return Google_Protobuf_Empty()
  }

  /// Applies all writes or none.
  package func commit(
    _ request: Google_Firestore_V1_CommitRequest,
    auth: AuthContext
  ) async throws -> Google_Firestore_V1_CommitResponse {
    let database = try database(request.database)
    let result = try await store.commit(
      try writes(request.writes, in: database),
      database: database,
      transaction: request.transaction.isEmpty ? nil : TransactionID(request.transaction),
      auth: auth
    )
    return .with {
      $0.writeResults = result.results.map(Self.proto)
      $0.commitTime = WireFormat.proto(result.commitTime)
    }
  }

  /// Applies each write on its own; the response has a status for each.
  package func batchWrite(
    _ request: Google_Firestore_V1_BatchWriteRequest,
    auth: AuthContext
  ) async throws -> Google_Firestore_V1_BatchWriteResponse {
    let database = try database(request.database)
    let writes = try writes(request.writes, in: database)
    let results = try await store.batchWrite(writes, database: database, auth: auth)
    return .with { reply in
      for result in results {
        switch result {
        case .success(let result):
          reply.writeResults.append(Self.proto(result))
          reply.status.append(Google_Rpc_Status())
        case .failure(let error):
          reply.writeResults.append(Google_Firestore_V1_WriteResult())
          reply.status.append(status(of: error))
        }
      }
    }
  }

  /// Begins a transaction; read-write unless the options say otherwise.
  package func beginTransaction(
    _ request: Google_Firestore_V1_BeginTransactionRequest,
    auth: AuthContext
  ) async throws -> Google_Firestore_V1_BeginTransactionResponse {
    let database = try database(request.database)
    let options = try transactionOptions(request.options)
    let id = try await store.begin(options, database: database, auth: auth)
    return .with { $0.transaction = id.data }
  }

  package func rollback(
    _ request: Google_Firestore_V1_RollbackRequest,
    auth: AuthContext
  ) async throws -> Google_Protobuf_Empty {
    let database = try database(request.database)
    try await store.rollback(TransactionID(request.transaction), database: database)
    return Google_Protobuf_Empty()
  }

  /// Decodes the mask of a write's response; an invalid mask throws before anything is written.
  private func answerMask(
    _ isSet: Bool,
    _ proto: Google_Firestore_V1_DocumentMask
  ) throws -> [FieldPath]? {
    guard isSet else { return nil }
    let mask = try WireFormat.mask(proto)
    try DocumentDatabase.check(mask: mask)
    return mask
  }

  func writes(
    _ protos: [Google_Firestore_V1_Write],
    in database: DatabaseName
  ) throws -> [Write] {
    try protos.map { proto in
      let write = try WireFormat.write(proto)
      try check(write.name, isIn: database)
      return write
    }
  }

  static func proto(_ result: WriteOutcome) -> Google_Firestore_V1_WriteResult {
    .with {
      if let time = result.updateTime { $0.updateTime = WireFormat.proto(time) }
      $0.transformResults = result.transformResults.map { WireFormat.proto($0) }
    }
  }

  private func status(of error: any Error) -> Google_Rpc_Status {
    WireFormat.proto(publicError(for: error))
  }
}

extension MapValue {
  /// Returns the fields selected by a mask; without a mask, all fields.
  func keeping(_ mask: [FieldPath]?) -> MapValue {
    guard let mask else { return self }
    var kept: MapValue = [:]
    for path in mask {
      if let value = self[path] { kept.set(value, at: path) }
    }
    return kept
  }
}
