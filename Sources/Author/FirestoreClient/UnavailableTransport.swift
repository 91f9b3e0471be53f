import FirestoreProtos

/// A transport that throws the same error for every call, for an environment without a database.
struct UnavailableTransport: FirestoreTransport {
  let reason: any Error

  func batchGetDocuments(
    _ request: Google_Firestore_V1_BatchGetDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_BatchGetDocumentsResponse] { throw reason }

  func commit(
    _ request: Google_Firestore_V1_CommitRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_CommitResponse { throw reason }

  func beginTransaction(
    _ request: Google_Firestore_V1_BeginTransactionRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_BeginTransactionResponse { throw reason }

  func rollback(
    _ request: Google_Firestore_V1_RollbackRequest,
    as credential: FirestoreCredential
  ) async throws { throw reason }

  func runQuery(
    _ request: Google_Firestore_V1_RunQueryRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_RunQueryResponse] { throw reason }

  func runAggregationQuery(
    _ request: Google_Firestore_V1_RunAggregationQueryRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_RunAggregationQueryResponse] { throw reason }

  func listen(
    _ request: Google_Firestore_V1_ListenRequest,
    as credential: FirestoreCredential,
    _ body: @escaping @Sendable (Google_Firestore_V1_ListenResponse) async throws -> Void
  ) async throws { throw reason }

  func listDocuments(
    _ request: Google_Firestore_V1_ListDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListDocumentsResponse { throw reason }

  func listCollectionIDs(
    _ request: Google_Firestore_V1_ListCollectionIdsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListCollectionIdsResponse { throw reason }
}
