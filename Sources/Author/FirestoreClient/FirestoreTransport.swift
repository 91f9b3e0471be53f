package import FirestoreProtos

/// A transport for Firestore calls, either over HTTP or directly to an emulator's handlers.
///
/// Every call throws `FirestoreError`. The transport does not retry calls.
package protocol FirestoreTransport: Sendable {
  /// Returns the responses in any order. A name that is not found has a response too.
  func batchGetDocuments(
    _ request: Google_Firestore_V1_BatchGetDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_BatchGetDocumentsResponse]

  /// Commits all writes or none.
  func commit(
    _ request: Google_Firestore_V1_CommitRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_CommitResponse

  func beginTransaction(
    _ request: Google_Firestore_V1_BeginTransactionRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_BeginTransactionResponse

  /// Ends a transaction without any of its writes.
  func rollback(
    _ request: Google_Firestore_V1_RollbackRequest,
    as credential: FirestoreCredential
  ) async throws

  /// Returns the responses in the order in which the server sent them.
  func runQuery(
    _ request: Google_Firestore_V1_RunQueryRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_RunQueryResponse]

  /// Returns the responses in the order in which the server sent them.
  func runAggregationQuery(
    _ request: Google_Firestore_V1_RunAggregationQueryRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_RunAggregationQueryResponse]

  func listDocuments(
    _ request: Google_Firestore_V1_ListDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListDocumentsResponse

  /// Listens to the request's target until the server ends the stream or the task is cancelled.
  ///
  /// `body` receives the responses one at a time. The server has to wait while it runs.
  func listen(
    _ request: Google_Firestore_V1_ListenRequest,
    as credential: FirestoreCredential,
    _ body: @escaping @Sendable (Google_Firestore_V1_ListenResponse) async throws -> Void
  ) async throws

  /// Returns one page of the ids of the collections below a document or at the root.
  func listCollectionIDs(
    _ request: Google_Firestore_V1_ListCollectionIdsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListCollectionIdsResponse
}
