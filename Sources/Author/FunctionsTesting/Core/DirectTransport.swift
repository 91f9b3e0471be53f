import FirestoreClient
import FirestoreEmulator
import FirestoreProtos
import Identity

/// Calls the emulator's handlers in this process.
///
/// The messages, credentials, statuses and texts are the same as over REST, without JSON in
/// between.
struct DirectTransport: FirestoreTransport {
  let service: FirestoreService

  func batchGetDocuments(
    _ request: Google_Firestore_V1_BatchGetDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_BatchGetDocumentsResponse] {
    try await call(credential) {
      Array(try await service.batchGetDocuments(request, auth: $0).protos)
    }
  }

  func commit(
    _ request: Google_Firestore_V1_CommitRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_CommitResponse {
    try await call(credential) { try await service.commit(request, auth: $0) }
  }

  func beginTransaction(
    _ request: Google_Firestore_V1_BeginTransactionRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_BeginTransactionResponse {
    try await call(credential) { try await service.beginTransaction(request, auth: $0) }
  }

  func rollback(
    _ request: Google_Firestore_V1_RollbackRequest,
    as credential: FirestoreCredential
  ) async throws {
    _ = try await call(credential) { try await service.rollback(request, auth: $0) }
  }

  func runQuery(
    _ request: Google_Firestore_V1_RunQueryRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_RunQueryResponse] {
    try await call(credential) { Array(try await service.runQuery(request, auth: $0).protos) }
  }

  func runAggregationQuery(
    _ request: Google_Firestore_V1_RunAggregationQueryRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_RunAggregationQueryResponse] {
    try await call(credential) { Array(try await service.runAggregationQuery(request, auth: $0)) }
  }

  func listDocuments(
    _ request: Google_Firestore_V1_ListDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListDocumentsResponse {
    try await call(credential) { try await service.listDocuments(request, auth: $0) }
  }

  func listCollectionIDs(
    _ request: Google_Firestore_V1_ListCollectionIdsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListCollectionIdsResponse {
    try await call(credential) { try await service.listCollectionIDs(request, auth: $0) }
  }

  private func call<Reply>(
    _ credential: FirestoreCredential,
    _ handler: (AuthContext) async throws -> Reply
  ) async throws -> Reply {
    do {
      let header: String? =
        switch credential {
        case .admin: "Bearer owner"
        case .idToken(let token): "Bearer \(token)"
        case .anonymous: nil
        }
      return try await handler(try service.authenticate(authorization: header))
    } catch {
      let told = service.told(error)
      throw FirestoreError(told.statusCode, told.statusMessage)
    }
  }
}
