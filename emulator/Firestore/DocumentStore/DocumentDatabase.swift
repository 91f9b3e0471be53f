package import DocumentModel
package import EventLog
package import Logging
package import QueryEngine
import ServiceLifecycle
package import StorageEngine
import Synchronization

/// The Firestore document database: atomic commits, transactions, lists, queries and listeners.
///
/// Reads can be as of a past time.
///
/// All state is in storage except locks and open transactions, which are lost when the process
/// ends. All methods are safe to call concurrently. They throw `StatusConvertible` errors with
/// production's codes and messages, and `CancellationError`.
package final class DocumentDatabase: Sendable, Service {
  /// The limits of the database.
  package struct Configuration: Sendable {
    /// The time a request waits for locks before it throws `ABORTED`; production waits similarly.
    package var lockWait: Duration
    /// The maximum number of requests that wait for locks at a time.
    package var lockWaitersMax: Int
    /// The maximum number of open transactions; each may hold locks for minutes.
    package var transactionsMax: Int
    /// The interval between checks for expired transactions.
    package var sweepInterval: Duration
    /// The maximum number of documents and bytes returned by one storage read of a query.
    ///
    /// They keep the read short.
    package var queryPageDocumentsMax: Int
    package var queryPageBytesMax: Int
    /// The maximum number of documents and index entries that one storage read of a query examines.
    package var queryCandidatesMax: Int
    /// The maximum size of results that `query` collects; production allows 128 MiB of memory.
    package var queryResultBytesMax: Int
    /// The maximum size of older versions that one read at a past time keeps in memory.
    package var overlayBytesMax: Int
    /// The maximum number of writes of one `batchWrite` in flight; enough to fill a group commit.
    package var batchWriteConcurrency: Int
    /// The page size of a list whose client names none, and the largest page size.
    package var listPageDefault: Int
    package var listPageMax: Int
    /// The interval at which idle listeners receive a new read time; production's is 30 seconds.
    package var listenerTimeInterval: Duration

    /// Creates limits; the defaults suit a development machine.
    package init(
      lockWait: Duration = .seconds(15),
      lockWaitersMax: Int = 10_000,
      transactionsMax: Int = 10_000,
      sweepInterval: Duration = .seconds(1),
      queryPageDocumentsMax: Int = 500,
      queryPageBytesMax: Int = 1 << 20,
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
  /// The reason why the cursor does not advance, and advice; nil if neither is known.
  let exceededAdvice: @Sendable () -> String?

  let locks: DocumentLocks
  let transactions: Mutex<TransactionTable>
  let sequencer: CommitSequencer
  let longReads: LongReads
  let hub = ListenHub()
  /// Limits how many queries sort large results in memory at a time.
  let largeQueries = ReadGate(largeQueriesMax)
  /// The time since the database was created, used for the expiry of transactions.
  let elapsed: @Sendable () -> Duration

  /// Creates a database over `storage`.
  ///
  /// `queryRunner` must have loaded its catalog from the same storage before the first write.
  /// `longReads` is also read by the retention of the event log. `exceededCursor` returns the name
  /// of the cursor that keeps the event log over its size limit. While it does, writes are refused
  /// with `RESOURCE_EXHAUSTED`.
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

  /// Notifies listeners, ends expired transactions and builds query indexes until shutdown.
  ///
  /// Returns when cancelled or when a graceful shutdown begins.
  package func run() async throws {
    do {
      try await cancelWhenGracefulShutdown { [self] in
        try await withThrowingTaskGroup(of: Void.self) { group in
          group.addTask { try await self.queryRunner.run(in: self.sequencer) }
          group.addTask { await self.sweep() }
          group.addTask { try await self.hub.run(for: self) }
          try await group.waitForAll()
        }
      }
    } catch is CancellationError where Task.isShuttingDownGracefully {
      // Work that the shutdown has interrupted is not a failure.
    }
  }

  /// Builds the indexes that queries have requested, in at most `commitsMax` commits.
  ///
  /// `run` does this continuously; call it directly only in tests that do not run the database.
  package func buildIndexes(commitsMax: Int = .max) async throws {
    try await queryRunner.buildIndexes(in: sequencer, commitsMax: commitsMax)
  }

  private func sweep() async {
    while !Task.isCancelled {
      // A cancelled sleep throws; the loop condition then ends the loop.
      try? await clock.sleep(for: configuration.sweepInterval)
      expireTransactions()
    }
  }

  /// Ends the expired transactions; `run` calls it regularly.
  func expireTransactions() {
    let time = elapsed()
    for owner in transactions.withLock({ $0.expire(at: time) }) { locks.release(owner) }
  }

  /// Returns the deadline up to which a request that starts now may wait for locks.
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

  /// Returns the key of a database's lock: requests share it, and a reset takes it exclusively.
  static func lockKey(_ database: DatabaseName) -> LockKey { DocumentKeys.databasePrefix(database) }
}
