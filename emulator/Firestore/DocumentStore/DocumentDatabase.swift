package import DocumentModel
package import EventLog
package import Logging
package import QueryEngine
import RuntimeSupport
import ServiceLifecycle
package import StorageEngine
import Synchronization

/// Firestore's documents: atomic commits, transactions, reads at a time, lists and queries.
///
/// Everything is in storage except locks and open transactions, which end with the process. All
/// methods may be called at the same time from anywhere; they throw `StatusConvertible` errors with
/// production's codes and texts, and `CancellationError`.
package final class DocumentDatabase: Sendable, Service {
  /// The bounds of the store.
  package struct Configuration: Sendable {
    /// How long a request waits for locks before it throws `ABORTED`; production waits similarly.
    package var lockWait: Duration
    /// Requests that wait for locks at one time.
    package var lockWaitersMax: Int
    /// Open transactions; each may hold locks for minutes.
    package var transactionsMax: Int
    /// How often transactions are checked for expiry.
    package var sweepInterval: Duration
    /// Documents and bytes that one storage read of a query takes, so that it stays short.
    package var queryPageDocumentsMax: Int
    package var queryPageBytesMax: Int
    /// Documents and index entries that one storage read of a query looks at.
    package var queryCandidatesMax: Int
    /// Bytes of results that `query` collects; production allows queries 128 MiB of memory.
    package var queryResultBytesMax: Int
    /// Bytes of older versions that one read at a time takes into memory.
    package var overlayBytesMax: Int
    /// Writes of one `batchWrite` in flight at a time; enough to fill a group commit.
    package var batchWriteConcurrency: Int
    /// The page of a list whose client names no size, and the largest one.
    package var listPageDefault: Int
    package var listPageMax: Int
    /// How often listeners to whom nothing happens are told so; production does every 30 seconds.
    package var listenerTimeInterval: Duration

    /// Bounds; the defaults suit a development machine.
    package init(
      lockWait: Duration = .seconds(15),
      lockWaitersMax: Int = 10_000,
      transactionsMax: Int = 10_000,
      sweepInterval: Duration = .seconds(1),
      queryPageDocumentsMax: Int = 500,
      queryPageBytesMax: Int = 4 << 20,
      queryCandidatesMax: Int = 300,
      queryResultBytesMax: Int = 128 << 20,
      overlayBytesMax: Int = 128 << 20,
      batchWriteConcurrency: Int = 64,
      listPageDefault: Int = 100,
      listPageMax: Int = 300,
      listenerTimeInterval: Duration = .seconds(30)
    ) {
      self.lockWait = lockWait
      self.lockWaitersMax = lockWaitersMax
      self.transactionsMax = transactionsMax
      self.sweepInterval = sweepInterval
      self.queryPageDocumentsMax = queryPageDocumentsMax
      self.queryPageBytesMax = queryPageBytesMax
      self.queryCandidatesMax = queryCandidatesMax
      self.queryResultBytesMax = queryResultBytesMax
      self.overlayBytesMax = overlayBytesMax
      self.batchWriteConcurrency = batchWriteConcurrency
      self.listPageDefault = listPageDefault
      self.listPageMax = listPageMax
      self.listenerTimeInterval = listenerTimeInterval
    }
  }

  let storage: any OrderedStorage
  let queryRunner: QueryRunner
  let tailer: EventTailer
  let accessPolicy: any AccessPolicy
  let now: @Sendable () -> Timestamp
  let clock: any Clock<Duration>
  let configuration: Configuration
  let logger: Logger
  let exceededCursor: @Sendable () -> String?
  /// Why that cursor does not move, and what to do; nil when only it knows.
  let exceededAdvice: @Sendable () -> String?

  let locks: DocumentLocks
  let transactions: Mutex<TransactionTable>
  let sequencer: CommitSequencer
  let longReads: LongReads
  let hub = ListenHub()
  /// Bounds how many queries sort much in memory at a time.
  let largeQueries = ReadGate(largeQueriesMax)
  /// The time since the store was made, by which transactions expire.
  let elapsed: @Sendable () -> Duration

  /// A database over `storage`.
  ///
  /// `queryRunner` has loaded its catalogue from the same storage before the first write.
  /// `longReads` is what the retention of the event log asks. `exceededCursor` names the cursor that
  /// keeps the event log too large; while it does, writes are refused with `RESOURCE_EXHAUSTED`.
  package init(
    storage: any OrderedStorage,
    queryRunner: QueryRunner,
    tailer: EventTailer,
    accessPolicy: any AccessPolicy = OpenAccess(),
    now: @escaping @Sendable () -> Timestamp,
    clock: any Clock<Duration>,
    configuration: Configuration = .init(),
    longReads: LongReads = LongReads(),
    exceededCursor: @escaping @Sendable () -> String? = { nil },
    exceededAdvice: @escaping @Sendable () -> String? = { nil },
    logger: Logger
  ) {
    self.storage = storage
    self.queryRunner = queryRunner
    self.tailer = tailer
    self.accessPolicy = accessPolicy
    self.now = now
    self.clock = clock
    self.configuration = configuration
    self.exceededCursor = exceededCursor
    self.exceededAdvice = exceededAdvice
    self.longReads = longReads
    self.logger = logger
    sequencer = CommitSequencer(storage: storage, now: now)
    locks = DocumentLocks(waitersMax: configuration.lockWaitersMax)
    transactions = Mutex(
      TransactionTable(limits: .init(openMax: configuration.transactionsMax))
    )
    elapsed = Self.stopwatch(clock)
  }

  /// Tells listeners, ends expired transactions and builds query indexes, until cancelled or shut
  /// down.
  package func run() async throws {
    try await cancelWhenGracefulShutdown { [self] in
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await self.queryRunner.run(in: self.sequencer) }
        group.addTask { await self.sweep() }
        group.addTask { try await self.hub.run(for: self) }
        try await group.waitForAll()
      }
    }
  }

  /// Builds the indexes that queries have asked for, in at most `commitsMax` commits.
  ///
  /// `run` does it by itself; this is for tests that do not run the database.
  package func buildIndexes(commitsMax: Int = .max) async throws {
    try await queryRunner.buildIndexes(in: sequencer, commitsMax: commitsMax)
  }

  private func sweep() async {
    while !Task.isCancelled {
      // A cancelled sleep ends the loop, which is all that cancellation asks for.
      try? await clock.sleep(for: configuration.sweepInterval)
      expireTransactions()
    }
  }

  /// Ends the expired transactions; `run` calls it regularly.
  func expireTransactions() {
    let time = elapsed()
    for owner in transactions.withLock({ $0.expire(at: time) }) { locks.release(owner) }
  }

  /// The moment until which a request that starts now may wait for locks.
  func lockDeadline() -> DocumentLocks.Deadline {
    Self.deadline(clock, after: configuration.lockWait)
  }

  private static func deadline(
    _ clock: some Clock<Duration>,
    after duration: Duration
  ) -> DocumentLocks.Deadline {
    let deadline = clock.now.advanced(by: duration)
    return { try await clock.sleep(until: deadline, tolerance: nil) }
  }

  private static func stopwatch(_ clock: some Clock<Duration>) -> @Sendable () -> Duration {
    let start = clock.now
    return { start.duration(to: clock.now) }
  }

  /// The lock that a database's requests share and that its reset holds alone.
  static func lockKey(_ database: DatabaseName) -> LockKey { DocumentKeys.databasePrefix(database) }
}
