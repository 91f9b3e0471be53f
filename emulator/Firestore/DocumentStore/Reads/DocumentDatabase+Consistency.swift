import DocumentModel
import EventLog
import Identity
import QueryEngine
package import StatusCodes
import StorageEngine
import Synchronization

/// A read's result with its read time and the transaction it began.
struct Consistent<Answer: Sendable>: Sendable {
  var answer: Answer
  /// The time as of which the result is valid.
  var readTime: Timestamp
  /// The transaction that the read began, if it was asked to begin one.
  var newTransaction: TransactionID?
}

extension DocumentDatabase {
  /// The documents and ranges that a read depends on, for the locks of transactions.
  struct ReadSet {
    var documents: Set<LockKey> = []
    var ranges: [QueryRange] = []
  }

  /// A check that throws unless a read is allowed, based on a snapshot.
  typealias Authorization = (SnapshotReader) throws -> Void

  /// Returns the locks for a transaction's read.
  ///
  /// Readers that shared a document or a range may have aborted each other before. In that case,
  /// transactions that intend to write take turns there, in the order of their requests.
  private func lockRequest(
    _ reads: ReadSet,
    _ database: DatabaseName,
    by owner: LockOwner
  ) -> LockRequest {
    var request = LockRequest(ranges: reads.ranges)
    let lines = reads.ranges.map(\.queueKey)
    request.documents = locks.modesForReading(reads.documents.union(lines), by: owner)
    request.documents[Self.lockKey(database)] = .shared
    return request
  }

  /// Runs a short read at the requested consistency, after taking the locks it needs.
  ///
  /// `body` may run more than once, each time on a snapshot for which `authorize` did not throw. A
  /// read that is denied takes no locks and waits for none.
  func read<Answer: Sendable>(
    _ reads: ReadSet,
    _ database: DatabaseName,
    at consistency: ReadConsistency,
    authorize: Authorization? = nil,
    _ body: (SnapshotReader) throws -> Answer
  ) async throws -> Consistent<Answer> {
    guard let authorize else {
      return try await read(reads, database, at: consistency, nil, body)
    }
    return try await LongDecisions.separated {
      try await read(reads, database, at: consistency, authorize, body)
    }
  }

  private func read<Answer: Sendable>(
    _ reads: ReadSet,
    _ database: DatabaseName,
    at consistency: ReadConsistency,
    _ authorize: Authorization?,
    _ body: (SnapshotReader) throws -> Answer
  ) async throws -> Consistent<Answer> {
    func authorizedBody(_ reader: SnapshotReader) throws -> Answer {
      try authorize?(reader)
      return try body(reader)
    }
    switch consistency {
    case .latest: return try await readLatest(authorizedBody)
    case .readTime(let time): return try await read(database, at: time, authorizedBody)
    case .transaction(let id):
      return try await read(reads, database, in: id, authorize: authorize, body)
    case .newTransaction(let options):
      let id = try await begin(options, database: database, auth: .admin)
      do {
        var result = try await read(reads, database, in: id, authorize: authorize, body)
        result.newTransaction = id
        return result
      } catch {
        abandon(id)
        throw error
      }
    }
  }

  func readLatest<Answer: Sendable>(
    _ body: (SnapshotReader) throws -> Answer
  ) async throws -> Consistent<Answer> {
    let settled = try await sequencer.settledTime()
    return try await storage.read { snapshot in
      let visible = try StoredClock.read(snapshot)
      sequencer.withClock { clock, _ in clock.observe(visible) }
      let answer = try body(SnapshotReader(snapshot))
      return Consistent(answer: answer, readTime: max(settled, visible))
    }
  }

  private func read<Answer: Sendable>(
    _ database: DatabaseName,
    at time: Timestamp,
    _ body: (SnapshotReader) throws -> Answer
  ) async throws -> Consistent<Answer> {
    try await checkRange(of: time)
    while true {
      let isSettled = try await sequencer.isSettled(upTo: time)
      let answer: Answer? = try await storage.read { snapshot in
        let visible = try StoredClock.read(snapshot)
        guard isSettled || time <= visible else { return nil }
        guard try isKept(time, of: database, in: snapshot) else { throw Self.tooOld }
        guard time < visible else { return try body(SnapshotReader(snapshot)) }
        return try body(
          SnapshotReader(
            snapshot,
            of: database,
            at: time,
            overlayBytesMax: configuration.overlayBytesMax
          )
        )
      }
      if let answer { return Consistent(answer: answer, readTime: time) }
      try await passCommitsInFlight()
    }
  }

  private func read<Answer: Sendable>(
    _ reads: ReadSet,
    _ database: DatabaseName,
    in id: TransactionID,
    authorize: Authorization?,
    _ body: (SnapshotReader) throws -> Answer
  ) async throws -> Consistent<Answer> {
    let start = elapsed()
    let transaction = try transactions.withLock { table throws(StatusError) in
      try table.beginCall(id, in: database, at: start)
    }
    defer {
      let end = elapsed()
      transactions.withLock { $0.endCall(id, at: end) }
    }
    guard transaction.mode == .pessimistic else {
      let result = try await readPinned(transaction) { reader in
        try authorize?(reader)
        return try body(reader)
      }
      if transaction.mode == .optimistic {
        let reads = OptimisticReads(documents: reads.documents, ranges: reads.ranges)
        transactions.withLock { $0.record(reads, for: id) }
      }
      return result
    }
    var authorized: UInt64?
    if let authorize {
      authorized = try await readLatest { reader in
        try authorize(reader)
        return reader.snapshot.sequence
      }.answer
    }
    do {
      try await locks.acquire(
        lockRequest(reads, database, by: transaction.owner),
        by: transaction.owner,
        until: lockDeadline()
      )
    } catch let error as StatusError {
      // A transaction whose wait timed out, or that lost a deadlock, has to start again.
      transactions.withLock { _ = $0.end(id, .aborted) }
      locks.release(transaction.owner)
      throw error
    }
    // If the transaction ended during the wait, no other code releases the locks just taken.
    guard transactions.withLock({ $0.isOpen(id) }) else {
      locks.release(transaction.owner)
      throw TransactionTable.expired
    }
    return try await readLatest { reader in
      if let authorize, reader.snapshot.sequence != authorized {
        do { try authorize(reader) } catch  where !(error is LongDecisionError) {
          // Access was lost during the wait; the locks must not outlive it.
          transactions.withLock { _ = $0.end(id, .aborted) }
          locks.release(transaction.owner)
          throw error
        }
      }
      return try body(reader)
    }
  }

  /// Reads at the time of the transaction's first read.
  private func readPinned<Answer: Sendable>(
    _ transaction: OpenTransaction,
    _ body: (SnapshotReader) throws -> Answer
  ) async throws -> Consistent<Answer> {
    let database = transaction.database
    if let time = transaction.readTime { return try await read(database, at: time, body) }
    let result = try await readLatest(body)
    let pinned = transactions.withLock { $0.pin(transaction.id, to: result.readTime) }
    return pinned == result.readTime ? result : try await read(database, at: pinned, body)
  }

  /// Returns true if a snapshot has every version of a database that was overwritten after `time`.
  func isKept(
    _ time: Timestamp,
    of database: DatabaseName,
    in snapshot: any StorageSnapshot
  ) throws -> Bool {
    if let trimmed = try CommitLog.trimmedThrough(in: snapshot), time < trimmed.commitTime {
      return false
    }
    let start = try StoredClock.pastStart(of: database, snapshot)
    return start.map { time >= $0.time } ?? true
  }

  /// Throws if a time is in the future or older than the versions that are kept.
  func checkRange(of time: Timestamp) async throws {
    try await sequencer.open()
    let now = now()
    guard time <= sequencer.withClock({ $0.latest(now: $1) }) else {
      throw StatusError.invalidArgument("The requested 'read_time' cannot be in the future.")
    }
    let age = PastVersions.age / .microseconds(1)
    guard Double(now.microseconds) - Double(time.microseconds) <= age else { throw Self.tooOld }
  }

  /// The error of a read of a state that is not kept anymore.
  package static let tooOld = StatusError(
    .failedPrecondition,
    "The requested 'read_time' is too old."
  )

  /// Runs a read of several parts, and again if an import or a reset came between its parts.
  ///
  /// They remove the state that the read has begun with. A read at a time of the caller's, or in a
  /// transaction, is not repeated, because it would then see another state. After
  /// `interruptedReadsMax` attempts it throws `FAILED_PRECONDITION`.
  package func repeatingInterrupted<Answer>(
    at consistency: ReadConsistency,
    isolation: isolated (any Actor)? = #isolation,
    _ read: () async throws -> Answer
  ) async throws -> Answer {
    for _ in 1..<Self.interruptedReadsMax {
      do { return try await read() } catch let error as StatusError
        where error == Self.tooOld && consistency == .latest
      {
        continue
      }
    }
    return try await read()
  }

  /// The maximum number of attempts at a read that imports interrupt.
  private static let interruptedReadsMax = 10

  /// Waits for all commits in flight by making one more, which becomes visible after them.
  private func passCommitsInFlight() async throws {
    try await sequencer.commit { _, _ in .init(durability: .relaxed) }
  }
}
