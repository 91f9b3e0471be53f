import FirestoreClient
import FirestoreEmulator
import FirestoreProtos
import FirestoreWire
import Identity
import StatusCodes

/// A transport that calls the emulator's handlers directly, in this process.
///
/// The messages, credentials, statuses and error texts are the same as over REST. Only the JSON
/// encoding is skipped.
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

  func listen(
    _ request: Google_Firestore_V1_ListenRequest,
    as credential: FirestoreCredential,
    _ body: @escaping @Sendable (Google_Firestore_V1_ListenResponse) async throws -> Void
  ) async throws {
    let (requests, sink) = AsyncStream<Google_Firestore_V1_ListenRequest>.makeStream(
      bufferingPolicy: .bufferingNewest(1)
    )
    sink.yield(request)
    do {
      let auth = try authenticate(credential)
      // The stream stays open until the listener ends.
      defer { sink.finish() }
      try await service.listen(
        to: { await requests.first { _ in true } },
        resourcePrefix: nil,
        auth: auth
      ) {
        for reply in $0 { try await body(reply.proto) }
      }
    } catch let error as any StatusConvertible {
      throw FirestoreError(error.statusCode, error.statusMessage)
    }
  }

  private func authenticate(_ credential: FirestoreCredential) throws -> AuthContext {
    let header: String? =
      switch credential {
      case .admin: "Bearer owner"
      case .idToken(let token): "Bearer \(token)"
      case .anonymous: nil
      }
    return try service.authenticate(authorization: header)
  }

  private func call<Reply>(
    _ credential: FirestoreCredential,
    _ handler: (AuthContext) async throws -> Reply
  ) async throws -> Reply {
    do {
      return try await handler(try authenticate(credential))
    } catch {
      let reported = service.publicError(for: error)
      throw FirestoreError(reported.statusCode, reported.statusMessage)
    }
  }
}
