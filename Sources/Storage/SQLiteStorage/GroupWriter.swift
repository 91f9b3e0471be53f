import Dispatch
import Logging
import StorageEngine
import Synchronization

/// A writer that commits batches in the order of submission, with a transaction per group.
///
/// A group consists of the batches that wait at the same time. Everything except `submit` and
/// `stop` runs on a serial queue, which has exclusive use of the connection.
final class GroupWriter: Sendable {
  /// A batch that waits for its commit.
  struct Submission: Sendable {
    var batch: StorageBatch
    var expecting: [VersionExpectation]
    var durability: Durability
    var completion: @Sendable (Result<UInt64, any Error>) -> Void
    var bytes: Int
  }

  /// The maximum number of batches in a group.
  ///
  /// A group of this size keeps the disk busy. A larger one would only delay its first batches.
  static let groupBatchesMax = 256
  /// The maximum size of a group in bytes.
  ///
  /// It limits the growth of the log, and so the wait, by one transaction.
  static let groupBytesMax = 8 << 20
  /// The maximum number of waiting batches.
  ///
  /// Callers wait for their commits, so only a runaway caller reaches this limit.
  static let waitingBatchesMax = 65_536
  /// The maximum memory for waiting batches.
  static let waitingBytesMax = 512 << 20

  private let queue = DispatchQueue(label: "hearth.sqlite.writer")
  private let waiting = Mutex(WaitingBatches())
  private let connection: SQLiteConnection
  private let checkpointer: Checkpointer
  private let isDurable: Bool
  private let logPagesMax: Int
  private let room: CheckpointSpace
  private let logger: Logger
  private let onFailure: @Sendable (StorageError) -> Void
  private let published: Atomic<UInt64>
  /// The error after the disk has failed to make a write durable.
  ///
  /// It is never reset.
  private let broken = Mutex<StorageError?>(nil)
  /// The state of the commits, which only the serial queue uses.
  private let progress: Mutex<Progress>

  private struct Progress {
    var sequence: UInt64
    var isFullySynchronous: Bool?
  }

  init(
    connection: SQLiteConnection,
    checkpointer: Checkpointer,
    sequence: UInt64,
    isDurable: Bool,
    logPagesMax: Int,
    room: CheckpointSpace,
    logger: Logger,
    onFailure: @escaping @Sendable (StorageError) -> Void
  ) {
    self.connection = connection
    self.checkpointer = checkpointer
    self.isDurable = isDurable
    self.logPagesMax = logPagesMax
    self.room = room
    self.onFailure = onFailure
    self.logger = logger
    published = Atomic(sequence)
    progress = Mutex(Progress(sequence: sequence))
  }

  /// The sequence of the last commit that readers see.
  var sequence: UInt64 { published.load(ordering: .acquiring) }

  /// The error with which all further batches are refused; nil while they are accepted.
  var failure: StorageError? { broken.withLock { $0 } }

  /// Adds a batch.
  ///
  /// Its completion is called on the writer's queue.
  func submit(_ submission: Submission) {
    let (refusal, isFirst) = waiting.withLock { $0.add(submission) }
    if let refusal { queue.async { submission.completion(.failure(refusal)) } }
    if isFirst { queue.async { self.commitGroup() } }
  }

  /// Refuses further batches and returns when the accepted batches have ended.
  func stop() async {
    waiting.withLock { $0.isClosed = true }
    await withCheckedContinuation { end in awaitIdle(end) }
  }

  private func awaitIdle(_ end: CheckedContinuation<Void, Never>) {
    queue.async { [self] in
      // A waiting group has its own block in the queue before this one.
      guard waiting.withLock({ $0.isIdle }) else { return awaitIdle(end) }
      end.resume()
    }
  }

  /// Makes relaxed commits durable, empties the log and closes the file.
  ///
  /// Call it after `stop`.
  func close() async throws {
    try await withCheckedThrowingContinuation { (end: CheckedContinuation<Void, any Error>) in
      queue.async { [self] in
        end.resume(with: Result { try closeConnection() })
      }
    }
  }

  //MARK: Work on the queue

  private func commitGroup() {
    let group = waiting.withLock { $0.takeGroup() }
    let outcomes = refusal().map { error in group.map { _ in .failure(error) } } ?? commit(group)
    for (submission, outcome) in zip(group, outcomes) { submission.completion(outcome) }
    if failure == nil {
      if isDurable { connection.extendLog(pagesMax: logPagesMax) }
      checkpointer.groupEnded(logPages: connection.logPages) { [self] result in
        // The checkpointer's thread has moved nearly all pages. Moving the rest here allows the log
        // to restart.
        queue.async { [self] in finishCheckpoint(after: result) }
      }
    }
    // Each group gets a new block, so that a checkpoint or the end can run in between.
    if waiting.withLock({ $0.groupEnded() }) { queue.async { self.commitGroup() } }
  }

  private func commit(_ group: [Submission]) -> [Result<UInt64, any Error>] {
    do {
      return try transact(group)
    } catch {
      guard group.count > 1, failure == nil else {
        logger.debug("commit failed", metadata: ["error": "\(error)"])
        return group.map { _ in .failure(error) }
      }
      // Nothing of the group was applied. In separate commits a batch fails only because of its own
      // errors.
      return group.flatMap { commit([$0]) }
    }
  }

  private func transact(_ group: [Submission]) throws -> [Result<UInt64, any Error>] {
    try progress.withLock { progress in
      try setSynchronous(group.contains { $0.durability == .synced }, &progress)
      var made: Set<Keyspace> = []
      do {
        try connection.run("begin immediate")
        var sequence = progress.sequence
        let outcomes = try group.map { submission -> Result<UInt64, any Error> in
          if let failed = try submission.expecting.first(where: { try !holds($0) }) {
            return .failure(StorageError.conflict(failed))
          }
          sequence += 1
          try apply(submission.batch, sequence, &made)
          return .success(sequence)
        }
        guard sequence > progress.sequence else {
          connection.rollBack()
          return outcomes
        }
        try connection.run(DatabaseFile.updateSequence, Int64(sequence))
        try connection.run("commit")
        progress.sequence = sequence
        published.store(sequence, ordering: .releasing)
        return outcomes
      } catch {
        connection.rollBack()
        connection.forget(made)
        if (error as? StorageError)?.kind == .full { connection.cutLog() }
        noteIfBroken(error)
        throw error
      }
    }
  }

  private func setSynchronous(_ isSynced: Bool, _ progress: inout Progress) throws {
    guard isDurable, progress.isFullySynchronous != isSynced else { return }
    // NORMAL writes the log in the same order without waiting for the disk. The next FULL commit
    // syncs the whole log, including all earlier commits.
    try connection.execute("pragma synchronous = \(isSynced ? "full" : "normal")")
    progress.isFullySynchronous = isSynced
  }

  /// Refuses all further writes after a failed sync.
  ///
  /// The system may have dropped data that it could not write. A commit that was reported as failed
  /// may still be in the log after a restart. Only a restart shows what was written.
  private func noteIfBroken(_ error: any Error) {
    guard let cause = (error as? StorageError)?.cause as? SQLiteError, cause.isSyncFailure,
      failure == nil
    else { return }
    let failure = StorageError(
      .failed,
      "the disk failed to keep what was written to \(connection.path); writes are refused until a "
        + "restart: check the disk, then restart",
      cause: cause
    )
    broken.withLock { $0 = failure }
    onFailure(failure)
  }

  /// Returns the error for a group that must not be attempted; nil if the group can be committed.
  ///
  /// Either the disk has failed, or a read that began long ago prevents the log from restarting.
  private func refusal() -> (any Error)? {
    if let failure { return failure }
    guard connection.logPages >= logPagesMax * 4 else { return nil }
    do {
      guard
        try !connection.checkpoint(.restart, waiting: SQLiteConnection.lastWaitMilliseconds)
      else { return nil }
      return StorageError(
        .full,
        "the log of \(connection.path) is full, and reads that began long ago still use it; retry "
          + "later"
      )
    } catch {
      noteIfBroken(error)
      return error
    }
  }

  private func holds(_ expectation: VersionExpectation) throws -> Bool {
    guard try connection.exists(expectation.keyspace) else { return expectation.version == nil }
    let version = try connection.with(.version, expectation.keyspace) { statement, table in
      var version: UInt64?
      _ = try table.bind(expectation.key, to: statement) {
        if try statement.step() { version = statement.sequence(0) }
      }
      return version
    }
    return version == expectation.version
  }

  private func apply(
    _ batch: StorageBatch,
    _ sequence: UInt64,
    _ made: inout Set<Keyspace>
  ) throws {
    for operation in batch.operations {
      switch operation {
      case .put(let keyspace, let key, let value):
        try put(keyspace, key, value, sequence, &made)
      case .putAtSequence(let keyspace, let prefix, let value):
        let key = StorageBatch.Operation.key(prefix: prefix, sequence: sequence)
        try put(keyspace, key, value, sequence, &made)
      case .delete(let keyspace, let key):
        guard try connection.exists(keyspace) else { continue }
        try connection.with(.delete, keyspace) { statement, table in
          _ = try table.bind(key, to: statement) { _ = try statement.step() }
        }
      case .deleteRange(let keyspace, let from, let to):
        guard try connection.exists(keyspace),
          let range = connection.range(keyspace, from: from, to: to)
        else { continue }
        let bounds = Statement.Bounds(from: range.from != nil, to: range.to != nil)
        try connection.with(.deleteRange(bounds), keyspace) { statement, _ in
          try range.bind(to: statement)
          _ = try statement.step()
        }
      }
    }
  }

  private func put(
    _ keyspace: Keyspace,
    _ key: [UInt8],
    _ value: [UInt8],
    _ sequence: UInt64,
    _ made: inout Set<Keyspace>
  ) throws {
    if try !connection.exists(keyspace) {
      try connection.create(keyspace)
      made.insert(keyspace)
    }
    try connection.with(.put, keyspace) { statement, table in
      let isKey = try value.withUnsafeBytes { value in
        try table.bind(key, to: statement) {
          try statement.bindInPlace(2, value)
          if keyspace.form != .log { try statement.bind(3, Int64(sequence)) }
          _ = try statement.step()
        }
      }
      precondition(isKey, "a log's rows are put at the sequence, without a prefix")
    }
  }

  private func closeConnection() throws {
    guard connection.isOpen else { return }
    defer { connection.close() }
    if let failure { throw failure }
    try unlessFull {
      try progress.withLock { progress in
        guard progress.isFullySynchronous == false else { return }
        try setSynchronous(true, &progress)
        try connection.run(DatabaseFile.updateSequence, Int64(progress.sequence))
      }
    }
    // Moving the log to the file needs as much space as the log has.
    if isDurable { connection.cutLog() }
    // Only an empty log is removed. A log that the disk may have lost in part must not be moved to
    // the file. The next process reads it and verifies its checksums.
    try unlessFull {
      if let missing = try room.missingBytes(for: connection) {
        // The sentence says how much space to free, and where.
        logger.warning("\(room.advice(missingBytes: missing))")
      } else {
        connection.keepLogOnClose(try !connection.checkpoint(.truncate))
      }
    }
  }

  /// Runs `body` and ignores a full disk, so that closing continues.
  ///
  /// A checkpoint syncs the log before it moves a page. Pages that it could not move stay in the
  /// log for the next start.
  private func unlessFull(_ body: () throws -> Void) throws {
    do {
      try body()
    } catch let error as StorageError where error.isOnlyFull {
      logger.warning("The log keeps what was written", metadata: ["error": "\(error.message)"])
    }
  }

  private func finishCheckpoint(after result: Result<Void, any Error>) {
    do {
      try result.get()
      guard failure == nil, connection.isOpen else { return }
      // Overlapping reads would keep the log forever, so a checkpoint of a large log waits for the
      // current reads.
      _ = try connection.checkpoint(connection.logPages < logPagesMax * 2 ? .passive : .restart)
    } catch {
      // The log only grows until the next attempt. Commits continue, unless the disk has lost a
      // write.
      noteIfBroken(error)
      logger.debug("checkpoint failed", metadata: ["error": "\(error)"])
    }
  }
}

/// The batches that wait for the writer, in order and within limits.
struct WaitingBatches {
  private var submissions: [GroupWriter.Submission] = []
  private var bytes = 0
  private var isRunning = false
  var isClosed = false

  var isIdle: Bool { submissions.isEmpty && !isRunning }

  /// Queues a batch.
  ///
  /// If `isFirst` is true, the caller must start a group.
  mutating func add(
    _ submission: GroupWriter.Submission
  ) -> (refusal: StorageError?, isFirst: Bool) {
    if isClosed { return (SQLiteStore.closed, false) }
    guard submissions.count < GroupWriter.waitingBatchesMax,
      bytes + submission.bytes <= GroupWriter.waitingBytesMax || submissions.isEmpty
    else {
      return (StorageError(.full, "too many commits wait for the disk; retry later"), false)
    }
    submissions.append(submission)
    bytes += submission.bytes
    defer { isRunning = true }
    return (nil, !isRunning)
  }

  /// Takes the next group, which has at least one batch of any size.
  mutating func takeGroup() -> [GroupWriter.Submission] {
    var count = 0
    var groupBytes = 0
    for submission in submissions.prefix(GroupWriter.groupBatchesMax) {
      if count > 0, groupBytes + submission.bytes > GroupWriter.groupBytesMax { break }
      count += 1
      groupBytes += submission.bytes
    }
    defer { submissions.removeFirst(count) }
    bytes -= groupBytes
    return Array(submissions.prefix(count))
  }

  /// Ends a group; returns true if another group must follow.
  mutating func groupEnded() -> Bool {
    isRunning = !submissions.isEmpty
    return isRunning
  }
}
