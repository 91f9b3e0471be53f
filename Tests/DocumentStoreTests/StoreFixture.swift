import DocumentModel
import Identity
import Logging
import QueryEngine
import StatusCodes
import StorageEngine
import TestSupport
import Testing

@testable import DocumentStore
@testable import EventLog

/// An in-memory store with clocks that the test controls.
///
/// The wall clock advances by a millisecond at each reading unless it is stopped.
final class StoreFixture: Sendable {
  let storage: FaultyStorage
  let clock = ManualClock()
  let queryRunner: QueryRunner
  let store: DocumentDatabase
  private let wall = WallClock(step: .milliseconds(1))

  init(
    storage: FaultyStorage = FaultyStorage(),
    access: any AccessPolicy = OpenAccess(),
    configuration: DocumentDatabase.Configuration = .init(),
    exceededCursor: @escaping @Sendable () -> String? = { nil },
    exceededAdvice: @escaping @Sendable () -> String? = { nil }
  ) {
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    self.storage = storage
    queryRunner = QueryRunner(logger: logger)
    store = DocumentDatabase(
      storage: storage,
      queryRunner: queryRunner,
      tailer: EventTailer(storage: storage, logger: logger),
      accessPolicy: access,
      now: wall.now,
      clock: clock,
      configuration: configuration,
      exceededCursor: exceededCursor,
      exceededAdvice: exceededAdvice,
      logger: logger
    )
  }

  /// Sets the wall clock and stops it.
  func stopWallClock(at time: Timestamp) {
    wall.stop(at: time)
  }

  /// Moves the wall clock forward.
  func passWallClock(_ seconds: Int64) {
    wall.advance(by: .seconds(seconds))
  }

  @discardableResult
  func commit(
    _ writes: Write...,
    in transaction: TransactionID? = nil,
    auth: AuthContext = .admin
  ) async throws -> CommitOutcome {
    try await store.commit(writes, database: database, transaction: transaction, auth: auth)
  }

  func get(
    _ path: String,
    at consistency: ReadConsistency = .latest
  ) async throws -> MapValue? {
    try await store.lookUp([name(path)], mask: nil, at: consistency, auth: .admin)
      .documents[0].document?.fields
  }

  func ids(_ query: Query, at consistency: ReadConsistency = .latest) async throws -> [String] {
    try await store.query(query, at: consistency, auth: .admin).documents.map(\.name.id)
  }

  func begin(_ options: TransactionOptions = .readWrite()) async throws -> TransactionID {
    try await store.begin(options, database: database, auth: .admin)
  }

  func events() async throws -> [CommitRecord] {
    try await storage.read { try CommitLog.records(after: 0, limit: 10_000, in: $0) }
  }

  /// Trims the event log and the past versions, as retention does when the log is too large.
  func trimEvents() async throws {
    let records = try await events()
    var batch = StorageBatch()
    if let last = records.last { CommitLog.trim(through: last, in: &batch) }
    for record in records { PastVersions.forget(record, in: &batch) }
    try await storage.commit(batch)
  }

  /// Returns once `count` requests wait for locks.
  func waitForLockWaiters(_ count: Int) async {
    // Each waiting request sleeps on the manual clock until its deadline.
    await clock.waitForSleepers(count)
    await eventually("\(count) requests wait for locks") { store.locks.waitingCount >= count }
  }
}

func all(_ collection: String) -> Query {
  Query(database: database, collectionID: collection)
}

func code(_ body: () async throws -> some Any) async -> StatusCode {
  do {
    _ = try await body()
    return .ok
  } catch let error as any StatusConvertible {
    return error.statusCode
  } catch {
    return .unknown
  }
}
