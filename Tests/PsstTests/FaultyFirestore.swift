@testable import FirestoreClient
import FirestoreProtos
import Synchronization

/// A Firestore transport that passes calls on to a real database and fails on demand.
final class FaultyFirestore: FirestoreTransport {
  /// The outcome of a commit.
  enum Fault: Sendable {
    /// The commit is made, after the given action.
    case none(@Sendable () async throws -> Void = {})
    /// The commit fails and is not made.
    case refused
    /// The commit is made, but its response is lost.
    case unheard
  }

  private struct State {
    var commits = 0
    var fault: (@Sendable (Int) -> Fault)?
    var isStalling = false
    var queriesLeft = Int.max
    var isOffline = false
    var transactions = 0
    var beforeTransaction: (@Sendable (Int) async throws -> Void)?
  }

  private let inner: any FirestoreTransport
  private let project: String
  private let state = Mutex(State())

  /// Creates a transport in front of the suite's database.
  init(_ firestore: Firestore) {
    inner = firestore.calls.transport
    project = firestore.database.project
  }

  /// A client of the faulty database that never retries.
  var firestore: Firestore {
    Firestore(project: project, transport: self, retries: CallRetries(attemptsMax: 1))
  }

  /// The number of attempted commits.
  var commits: Int { state.withLock { $0.commits } }

  /// Sets the outcomes of commits by their number, counted from 1 from now on; nil ends all faults.
  func decide(_ fault: (@Sendable (Int) -> Fault)?) {
    state.withLock {
      $0.commits = 0
      $0.fault = fault
    }
  }

  /// Sets an action that runs before each transaction and receives its number.
  ///
  /// Transactions are counted from 1, starting now.
  func beforeTransaction(_ body: (@Sendable (Int) async throws -> Void)?) {
    state.withLock {
      $0.transactions = 0
      $0.beforeTransaction = body
    }
  }

  /// Fails all queries after `count` further ones; nil ends that.
  func refuseQueries(after count: Int?) { state.withLock { $0.queriesLeft = count ?? .max } }

  /// Makes every query hang until it is cancelled.
  func stallQueries() { state.withLock { $0.isStalling = true } }

  /// Fails every call from now on, and every listener at its next message; false ends that.
  func setOffline(_ isOffline: Bool) { state.withLock { $0.isOffline = isOffline } }

  private func checkLine() throws {
    guard !state.withLock({ $0.isOffline }) else {
      throw FirestoreError(.unavailable, "there is no connection")
    }
  }

  func commit(
    _ request: Google_Firestore_V1_CommitRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_CommitResponse {
    try checkLine()
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

  // MARK: Calls that fail only without a connection

  func batchGetDocuments(
    _ request: Google_Firestore_V1_BatchGetDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_BatchGetDocumentsResponse] {
    try checkLine()
    return try await inner.batchGetDocuments(request, as: credential)
  }

  func beginTransaction(
    _ request: Google_Firestore_V1_BeginTransactionRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_BeginTransactionResponse {
    try checkLine()
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
    try checkLine()
    try await inner.rollback(request, as: credential)
  }

  func runQuery(
    _ request: Google_Firestore_V1_RunQueryRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_RunQueryResponse] {
    try checkLine()
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
    try checkLine()
    return try await inner.runAggregationQuery(request, as: credential)
  }

  func listen(
    _ request: Google_Firestore_V1_ListenRequest,
    as credential: FirestoreCredential,
    _ body: @escaping @Sendable (Google_Firestore_V1_ListenResponse) async throws -> Void
  ) async throws {
    try checkLine()
    try await inner.listen(request, as: credential) { response in
      try self.checkLine()
      try await body(response)
    }
  }

  func listDocuments(
    _ request: Google_Firestore_V1_ListDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListDocumentsResponse {
    try checkLine()
    return try await inner.listDocuments(request, as: credential)
  }

  func listCollectionIDs(
    _ request: Google_Firestore_V1_ListCollectionIdsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListCollectionIdsResponse {
    try checkLine()
    return try await inner.listCollectionIDs(request, as: credential)
  }
}
