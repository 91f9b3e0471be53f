package import FirestoreProtos

/// Carries Firestore's calls: over HTTP, or straight to an emulator's handlers.
///
/// Every call throws `FirestoreError`. Nothing is retried here.
package protocol FirestoreTransport: Sendable {
  /// Returns the answers in any order; a name that is not found has an answer too.
  func batchGetDocuments(
    _ request: Google_Firestore_V1_BatchGetDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_BatchGetDocumentsResponse]

  /// Commits writes, all or none.
  func commit(
    _ request: Google_Firestore_V1_CommitRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_CommitResponse

  /// Begins a transaction.
  func beginTransaction(
    _ request: Google_Firestore_V1_BeginTransactionRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_BeginTransactionResponse

  /// Ends a transaction without a trace.
  func rollback(
    _ request: Google_Firestore_V1_RollbackRequest,
    as credential: FirestoreCredential
  ) async throws

  /// Returns the answers in order.
  func runQuery(
    _ request: Google_Firestore_V1_RunQueryRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_RunQueryResponse]

  /// Returns the answers in order.
  func runAggregationQuery(
    _ request: Google_Firestore_V1_RunAggregationQueryRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_RunAggregationQueryResponse]

  /// Returns one page of a collection.
  func listDocuments(
    _ request: Google_Firestore_V1_ListDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListDocumentsResponse

  /// Listens to the request's target until the server ends the stream or the task is cancelled.
  ///
  /// `body` gets the answers one after the other; the server is held up while it runs.
  func listen(
    _ request: Google_Firestore_V1_ListenRequest,
    as credential: FirestoreCredential,
    _ body: @escaping @Sendable (Google_Firestore_V1_ListenResponse) async throws -> Void
  ) async throws

  /// Returns one page of the ids of the collections below a document or the root.
  func listCollectionIDs(
    _ request: Google_Firestore_V1_ListCollectionIdsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListCollectionIdsResponse
}
