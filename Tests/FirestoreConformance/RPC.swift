import FirestoreProtos
import SwiftProtobuf

/// A method of the service with its messages as JSON text, so that cases can be tables.
struct RPC: Sendable {
  let name: String
  let isStreamed: Bool
  /// Encodes a request's JSON as protobuf bytes.
  let bytes: @Sendable (String) throws -> [UInt8]
  /// Decodes a response's protobuf bytes to JSON.
  let json: @Sendable ([UInt8]) throws -> String

  private init<Request: Message, Reply: Message>(
    _ name: String,
    _: Request.Type,
    _: Reply.Type,
    isStreamed: Bool = false
  ) {
    self.name = name
    self.isStreamed = isStreamed
    bytes = { try Request(jsonString: $0).serializedBytes() }
    json = { try Reply(serializedBytes: $0).jsonString() }
  }

  static let getDocument = RPC(
    "GetDocument",
    Google_Firestore_V1_GetDocumentRequest.self,
    Google_Firestore_V1_Document.self
  )
  static let listDocuments = RPC(
    "ListDocuments",
    Google_Firestore_V1_ListDocumentsRequest.self,
    Google_Firestore_V1_ListDocumentsResponse.self
  )
  static let createDocument = RPC(
    "CreateDocument",
    Google_Firestore_V1_CreateDocumentRequest.self,
    Google_Firestore_V1_Document.self
  )
  static let updateDocument = RPC(
    "UpdateDocument",
    Google_Firestore_V1_UpdateDocumentRequest.self,
    Google_Firestore_V1_Document.self
  )
  static let deleteDocument = RPC(
    "DeleteDocument",
    Google_Firestore_V1_DeleteDocumentRequest.self,
    Google_Protobuf_Empty.self
  )
  static let commit = RPC(
    "Commit",
    Google_Firestore_V1_CommitRequest.self,
    Google_Firestore_V1_CommitResponse.self
  )
  static let batchWrite = RPC(
    "BatchWrite",
    Google_Firestore_V1_BatchWriteRequest.self,
    Google_Firestore_V1_BatchWriteResponse.self
  )
  static let beginTransaction = RPC(
    "BeginTransaction",
    Google_Firestore_V1_BeginTransactionRequest.self,
    Google_Firestore_V1_BeginTransactionResponse.self
  )
  static let rollback = RPC(
    "Rollback",
    Google_Firestore_V1_RollbackRequest.self,
    Google_Protobuf_Empty.self
  )
  static let listCollectionIDs = RPC(
    "ListCollectionIds",
    Google_Firestore_V1_ListCollectionIdsRequest.self,
    Google_Firestore_V1_ListCollectionIdsResponse.self
  )
  static let batchGet = RPC(
    "BatchGetDocuments",
    Google_Firestore_V1_BatchGetDocumentsRequest.self,
    Google_Firestore_V1_BatchGetDocumentsResponse.self,
    isStreamed: true
  )
  static let runQuery = RPC(
    "RunQuery",
    Google_Firestore_V1_RunQueryRequest.self,
    Google_Firestore_V1_RunQueryResponse.self,
    isStreamed: true
  )
  static let runAggregationQuery = RPC(
    "RunAggregationQuery",
    Google_Firestore_V1_RunAggregationQueryRequest.self,
    Google_Firestore_V1_RunAggregationQueryResponse.self,
    isStreamed: true
  )
}
