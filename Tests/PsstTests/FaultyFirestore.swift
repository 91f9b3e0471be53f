@testable import FirestoreClient
import FirestoreProtos
import Synchronization

/// A database that can be made to fail, in front of a real one.
final class FaultyFirestore: FirestoreTransport {
  /// What becomes of a commit.
  enum Fault: Sendable {
    /// It is made, and something happens before.
    case none(@Sendable () async throws -> Void = {})
    /// It is not made.
    case refused
    /// It is made, and nobody hears of it.
    case unheard
  }

  private struct State {
    var commits = 0
    var fault: (@Sendable (Int) -> Fault)?
    var isStalling = false
    var queriesLeft = Int.max
    var transactions = 0
    var beforeTransaction: (@Sendable (Int) async throws -> Void)?
  }

  private let inner: any FirestoreTransport
  private let project: String
  private let state = Mutex(State())

  /// In front of the database that a suite gives.
  init(_ firestore: Firestore) {
    inner = firestore.calls.transport
    project = firestore.database.project
  }

  /// The database behind the faults; nothing is tried again by itself.
  var firestore: Firestore {
    Firestore(project: project, transport: self, retries: CallRetries(attemptsMax: 1))
  }

  /// How many commits were asked for.
  var commits: Int { state.withLock { $0.commits } }

  /// Decides about commits by their number, counted from 1 and from now; nil ends all faults.
  func decide(_ fault: (@Sendable (Int) -> Fault)?) {
    state.withLock {
      $0.commits = 0
      $0.fault = fault
    }
  }

  /// Lets something happen before transactions, by their number, counted from 1 and from now.
  func beforeTransaction(_ body: (@Sendable (Int) async throws -> Void)?) {
    state.withLock {
      $0.transactions = 0
      $0.beforeTransaction = body
    }
  }

  /// Refuses all queries after so many; nil ends that.
  func refuseQueries(after count: Int?) { state.withLock { $0.queriesLeft = count ?? .max } }

  /// Lets no query end until it is cancelled.
  func stallQueries() { state.withLock { $0.isStalling = true } }

  func commit(
    _ request: Google_Firestore_V1_CommitRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_CommitResponse {
    let fault = state.withLock { state in
      state.commits += 1
      return state.fault?(state.commits) ?? .none()
    }
    switch fault {
    case .none(let before):
      try await before()
      return try await inner.commit(request, as: credential)
    case .refused: throw FirestoreError(.unavailable, "the connection is refused")
    case .unheard:
      _ = try await inner.commit(request, as: credential)
      throw FirestoreError(.unavailable, "the connection is lost", mayHaveActed: true)
    }
  }

  // MARK: What does not fail

  func batchGetDocuments(
    _ request: Google_Firestore_V1_BatchGetDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_BatchGetDocumentsResponse] {
    try await inner.batchGetDocuments(request, as: credential)
  }

  func beginTransaction(
    _ request: Google_Firestore_V1_BeginTransactionRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_BeginTransactionResponse {
    let (number, before) = state.withLock { state in
      state.transactions += 1
      return (state.transactions, state.beforeTransaction)
    }
    try await before?(number)
    return try await inner.beginTransaction(request, as: credential)
  }

  func rollback(
    _ request: Google_Firestore_V1_RollbackRequest,
    as credential: FirestoreCredential
  ) async throws {
    try await inner.rollback(request, as: credential)
  }

  func runQuery(
    _ request: Google_Firestore_V1_RunQueryRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_RunQueryResponse] {
    let isRefused = state.withLock { state in
      state.queriesLeft -= 1
      return state.queriesLeft < 0
    }
    if isRefused { throw FirestoreError(.unavailable, "the connection is refused") }
    if state.withLock({ $0.isStalling }) { try await Task.sleep(for: .seconds(3600)) }
    return try await inner.runQuery(request, as: credential)
  }

  func runAggregationQuery(
    _ request: Google_Firestore_V1_RunAggregationQueryRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_RunAggregationQueryResponse] {
    try await inner.runAggregationQuery(request, as: credential)
  }

  func listen(
    _ request: Google_Firestore_V1_ListenRequest,
    as credential: FirestoreCredential,
    _ body: @escaping @Sendable (Google_Firestore_V1_ListenResponse) async throws -> Void
  ) async throws {
    try await inner.listen(request, as: credential, body)
  }

  func listDocuments(
    _ request: Google_Firestore_V1_ListDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListDocumentsResponse {
    try await inner.listDocuments(request, as: credential)
  }

  func listCollectionIDs(
    _ request: Google_Firestore_V1_ListCollectionIdsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListCollectionIdsResponse {
    try await inner.listCollectionIDs(request, as: credential)
  }
}
