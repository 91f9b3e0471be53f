package import DocumentModel
import EventLog
import Events
package import Identity
import QueryEngine
import StatusCodes
import StorageEngine
import Synchronization

/// The result of a commit.
package struct CommitOutcome: Sendable, Hashable {
  /// One result for each write, in order.
  package var results: [WriteOutcome]
  /// The time of the commit, later than that of every earlier commit.
  package var commitTime: Timestamp

  package init(results: [WriteOutcome], commitTime: Timestamp) {
    self.results = results
    self.commitTime = commitTime
  }
}

extension DocumentDatabase {
  /// Applies all writes or none.
  ///
  /// Returns when the commit is visible and as durable as storage makes it. Outside a transaction
  /// it waits for the locks of transactions, for a bounded time. Inside a transaction it ends the
  /// transaction, whether it succeeds or not. Repeating the same commit of the same transaction
  /// returns the same result.
  ///
  /// Cancellation has no effect once the commit has been submitted to storage. Before that, it
  /// leaves a transaction open for its client to commit again.
  package func commit(
    _ writes: [Write],
    database: DatabaseName,
    transaction id: TransactionID?,
    auth: AuthContext
  ) async throws -> CommitOutcome {
    if let id {
      return try await commit(writes, database: database, transaction: id, auth: auth)
    }
    try check(writes, database)
    return try await apply(writes, database, as: .plain(makeOwner()), auth)
  }

  /// Applies each write on its own; a failed write's result is its error.
  ///
  /// Throws, and writes nothing, if the request is malformed: a write that is invalid for any
  /// document, or two writes of one document.
  package func batchWrite(
    _ writes: [Write],
    database: DatabaseName,
    auth: AuthContext
  ) async throws -> [Result<WriteOutcome, any Error>] {
    guard Set(writes.map(\.name)).count == writes.count else {
      throw StatusError.invalidArgument(
        "the same document cannot be written more than once in a single request"
      )
    }
    for write in writes { try WriteValidation.check(write, in: database) }
    try authorize(.batchWrite, in: database, auth)
    return try await withThrowingTaskGroup(of: (Int, Result<WriteOutcome, any Error>).self) {
      group in
      var results = writes.map { _ in Result<WriteOutcome, any Error>.success(WriteOutcome()) }
      for (index, write) in writes.enumerated() {
        if index >= configuration.batchWriteConcurrency, let (done, result) = try await group.next()
        {
          results[done] = result
        }
        group.addTask {
          do {
            let answer = try await self.commit(
              [write],
              database: database,
              transaction: nil,
              auth: auth
            )
            return (index, .success(answer.results.first ?? WriteOutcome()))
          } catch is CancellationError {
            throw CancellationError()
          } catch {
            return (index, .failure(error))
          }
        }
      }
      for try await (done, result) in group { results[done] = result }
      return results
    }
  }

  /// The kind of a commit, which determines the locks it takes and those it keeps while it waits.
  enum Committer {
    case plain(LockOwner)
    case pessimistic(LockOwner)
    case optimistic(LockOwner, OptimisticReads, readTime: Timestamp)

    var owner: LockOwner {
      switch self {
      case .plain(let owner), .pessimistic(let owner), .optimistic(let owner, _, _): owner
      }
    }
  }

  func makeOwner() -> LockOwner { transactions.withLock { $0.makeOwner() } }

  /// Throws for writes that are invalid regardless of what is stored.
  func check(_ writes: [Write], _ database: DatabaseName) throws {
    for write in writes { try WriteValidation.check(write, in: database) }
    try WriteValidation.checkSequence(writes)
    if !writes.isEmpty { try checkEventLog() }
  }

  /// Throws while the event log is full.
  func checkEventLog() throws {
    guard let cursor = exceededCursor() else { return }
    throw StatusError(
      .resourceExhausted,
      "The event log is full because "
        + (exceededAdvice() ?? "\"\(cursor)\" has fallen behind")
        + "; writes are refused until it catches up."
    )
  }

  /// Locks, reads, authorizes, submits and waits; finally releases all locks of the owner.
  ///
  /// If a cancellation ends it before the commit is submitted, a transaction keeps the locks of its
  /// reads.
  func apply(
    _ writes: [Write],
    _ database: DatabaseName,
    as committer: Committer,
    _ auth: AuthContext
  ) async throws -> CommitOutcome {
    let deadline = lockDeadline()
    var request = lockRequest(writes, database, committer)
    do {
      for _ in 0..<Self.evaluationsMax {
        let prepared = try await prepare(
          writes,
          database,
          as: committer,
          auth,
          &request,
          until: deadline
        )
        do {
          let time = try await submit(prepared, database, committer.owner, auth)
          return CommitOutcome(results: prepared.plan.results(at: time), commitTime: time)
        } catch is LookUpsChangedError {
          // The documents that the policy read are locked in the next attempt, which also waits for
          // the commit that has changed them. After that, only documents that the policy did not
          // read before can change.
          release(committer)
          for name in prepared.lookUps.names {
            let key = DocumentKeys.key(name)
            request.documents[key] = request.documents[key] ?? .shared
          }
        }
      }
      throw DocumentLocks.contention
    } catch is CancellationError {
      release(committer)
      throw CancellationError()
    } catch {
      locks.release(committer.owner)
      throw error
    }
  }

  /// The maximum number of evaluations of a commit while documents that its policy reads change.
  ///
  /// Two are enough unless each evaluation reads different documents.
  private static let evaluationsMax = 5

  /// A commit plan with the documents on which its access decision depends.
  private struct PreparedCommit {
    var plan: CommitPlan
    var lookUps: LookUps
  }

  /// Releases the locks of a commit, but not those of its transaction's reads.
  private func release(_ committer: Committer) {
    if case .pessimistic(let owner) = committer {
      locks.releaseCommit(owner)
    } else {
      locks.release(committer.owner)
    }
  }

  /// Returns a plan that stays valid while the owner keeps its locks.
  ///
  /// It also depends on the documents that the access policy read; `submit` checks that these are
  /// unchanged.
  private func prepare(
    _ writes: [Write],
    _ database: DatabaseName,
    as committer: Committer,
    _ auth: AuthContext,
    _ request: inout LockRequest,
    until deadline: @escaping DocumentLocks.Deadline
  ) async throws -> PreparedCommit {
    while true {
      try await locks.acquire(request, by: committer.owner, until: deadline)
      let prepared = try await LongDecisions.separated {
        try await evaluate(writes, database, as: committer, auth)
      }
      let changes = prepared.plan.changes(at: prepared.plan.requestTime)
      if changes.isEmpty
        || locks.tryAcquire(LockRequest(changes: changes), by: committer.owner)
      {
        return prepared
      }
      // A transaction has queried the documents to be changed. Waiting for it while keeping them
      // locked could prevent that transaction from ever ending. So all locks are released and
      // requested again together.
      release(committer)
      request.changes = changes
    }
  }

  private func lockRequest(
    _ writes: [Write],
    _ database: DatabaseName,
    _ committer: Committer
  ) -> LockRequest {
    var request = LockRequest()
    request.documents.reserveCapacity(writes.count + 1)
    if case .optimistic(_, let reads, _) = committer {
      for key in reads.documents { request.documents[key] = .shared }
      request.ranges = reads.ranges
    }
    for write in writes {
      let key = DocumentKeys.key(write.name)
      if case .verify = write.operation {
        request.documents[key] = request.documents[key] ?? .shared
      } else {
        request.documents[key] = .exclusive
      }
    }
    request.documents[Self.lockKey(database)] = .shared
    return request
  }

  /// Reads the stored documents and applies the writes to them: access first, then preconditions.
  private func evaluate(
    _ writes: [Write],
    _ database: DatabaseName,
    as committer: Committer,
    _ auth: AuthContext
  ) async throws -> PreparedCommit {
    let finished = sequencer.withClock { clock, _ in clock.finished }
    return try await storage.read { snapshot in
      let visible = try StoredClock.read(snapshot)
      let requestTime = sequencer.withClock { $0.requestTime(visible: visible, now: $1) }
      let reader = SnapshotReader(snapshot)
      if case .optimistic(_, let reads, let readTime) = committer {
        try validate(reads, of: database, at: readTime, snapshot)
      }
      let plan = try CommitPlan(writes, requestTime: requestTime, stored: reader.document)
      let notes = AccessView.Notes()
      if auth != .admin { try authorize(plan, auth, reader, notes) }
      try plan.checkPreconditions()
      // A commit that has failed changed nothing, so it counts as seen.
      let lookUps = LookUps(names: notes.names, visible: max(visible, finished))
      return PreparedCommit(plan: plan, lookUps: lookUps)
    }
  }

  private func authorize(
    _ plan: CommitPlan,
    _ auth: AuthContext,
    _ reader: SnapshotReader,
    _ notes: AccessView.Notes
  ) throws {
    let time = plan.requestTime
    let writes = plan.steps.map { step in
      let document = plan.documents[step.document]
      return AccessWrite(
        write: step.write,
        before: step.before.map {
          CommitPlan.document(document.name, $0, at: document.original?.updateTime ?? time)
        },
        after: step.after.map { CommitPlan.document(document.name, $0, at: time) }
      )
    }
    let after = Dictionary(
      uniqueKeysWithValues: plan.documents.map { document in
        (document.name, document.final.map { CommitPlan.document(document.name, $0, at: time) })
      }
    )
    let view = AccessView(requestTime: time, notes: notes, stored: reader.document) { name in
      if let document = after[name] { return document }
      return try reader.document(name)
    }
    try accessPolicy.authorizeWrites(writes, auth: auth, view: view)
  }

  /// Throws `ABORTED` if any data that an optimistic transaction read has changed since.
  ///
  /// Also throws `ABORTED` if the versions that would show a change are no longer kept.
  private func validate(
    _ reads: OptimisticReads,
    of database: DatabaseName,
    at readTime: Timestamp,
    _ snapshot: any StorageSnapshot
  ) throws {
    guard try isKept(readTime, of: database, in: snapshot) else { throw DocumentLocks.contention }
    let start = try PastVersions.sequence(at: readTime, of: database, in: snapshot)
    for key in reads.documents {
      let written = try snapshot.get(DocumentKeys.keyspace, key)?.version ?? 0
      guard try written <= start && !PastVersions.isChanged(key, after: readTime, in: snapshot)
      else { throw DocumentLocks.contention }
    }
    guard !reads.ranges.isEmpty else { return }
    let changes = try self.changes(after: start, at: readTime, in: snapshot) { name in
      reads.ranges.contains { $0.contains(name) }
    }
    let present = SnapshotReader(snapshot)
    for (name, before) in changes {
      let change = DocumentChange(name: name, before: before, after: try present.document(name))
      guard change.before != change.after else { continue }
      if reads.ranges.contains(where: { $0.contains(name) && $0.covers(change) }) {
        throw DocumentLocks.contention
      }
    }
  }

  /// Gives the plan its time and submits it to storage; returns when the commit is visible.
  ///
  /// Throws `LookUpsChangedError`, with the locks still held, if the plan is no longer valid.
  private func submit(
    _ prepared: PreparedCommit,
    _ database: DatabaseName,
    _ owner: LockOwner,
    _ auth: AuthContext
  ) async throws -> Timestamp {
    let plan = prepared.plan
    return try await sequencer.commit(
      notBefore: plan.requestTime,
      unlessChanged: prepared.lookUps
    ) { time, batch in
      let changes = plan.changes(at: time)
      let maintainer = queryRunner.indexMaintainer
      for change in changes {
        let key = DocumentKeys.key(change.name)
        if let after = change.after {
          batch.put(DocumentKeys.keyspace, key, DocumentKeys.encode(after))
        } else {
          batch.delete(DocumentKeys.keyspace, key)
        }
        PastVersions.keep(change, documentKey: key, at: time, in: &batch)
        maintainer.append(change, to: &batch)
      }
      let entry = CommitLog.append(
        changes,
        commitTime: time,
        database: database,
        auth: auth,
        to: &batch
      )
      // A commit without changes can lose only its time.
      return .init(
        durability: entry == nil ? .relaxed : .synced,
        changes: .documents(changes.map(\.name)),
        completed: { [locks] _ in locks.release(owner) },
        resumed: { [tailer] result in
          guard var entry, case .success(let sequence) = result else { return }
          entry.record.sequence = sequence
          tailer.offer(entry)
        }
      )
    }
  }
}
