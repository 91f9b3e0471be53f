import Dispatch
import Logging
import StorageEngine
import Synchronization

/// Commits batches in the order of submission; all that wait share one transaction.
///
/// Everything but `submit` and `stop` runs on one serial queue, which confines the connection.
final class GroupWriter: Sendable {
  /// One batch on its way.
  struct Submission: Sendable {
    var batch: StorageBatch
    var expecting: [VersionExpectation]
    var durability: Durability
    var completion: @Sendable (Result<UInt64, any Error>) -> Void
    var bytes: Int
  }

  /// A group this large keeps the disk busy; a larger one would only delay its first batches.
  static let groupBatchesMax = 256
  /// The bound on the log's growth, and so on the wait, from one transaction.
  static let groupBytesMax = 8 << 20
  /// The most waiting batches: callers wait for their commits, so more come only from a runaway.
  static let waitingBatchesMax = 65_536
  /// The most memory that waiting batches may take.
  static let waitingBytesMax = 512 << 20

  private let queue = DispatchQueue(label: "hearth.sqlite.writer")
  private let waiting = Mutex(WaitingBatches())
  private let connection: Connection
  private let checkpointer: Checkpointer
  private let isDurable: Bool
  private let logPagesMax: Int
  private let room: CheckpointRoom
  private let logger: Logger
  private let onFailure: @Sendable (StorageError) -> Void
  private let published: Atomic<UInt64>
  /// Set for good once the disk has lost a write that it should have made durable.
  private let broken = Mutex<StorageError?>(nil)
  /// Protected by `queue`.
  private let progress: Mutex<Progress>

  private struct Progress {
    var sequence: UInt64
    var isFullySynchronous: Bool?
  }

  init(
    connection: Connection,
    checkpointer: Checkpointer,
    sequence: UInt64,
    isDurable: Bool,
    logPagesMax: Int,
    room: CheckpointRoom,
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

  /// The last commit that readers see.
  var sequence: UInt64 { published.load(ordering: .acquiring) }

  /// Why all further batches are refused; nil while they are accepted.
  var failure: StorageError? { broken.withLock { $0 } }

  /// Takes a batch; its completion is called on the writer's queue.
  func submit(_ submission: Submission) {
    let (refusal, isFirst) = waiting.withLock { $0.add(submission) }
    if let refusal { queue.async { submission.completion(.failure(refusal)) } }
    if isFirst { queue.async { self.commitGroup() } }
  }

  /// Refuses further batches and returns when the accepted ones have ended.
  func stop() async {
    waiting.withLock { $0.isClosed = true }
    await withCheckedContinuation { end in awaitIdle(end) }
  }

  private func awaitIdle(_ end: CheckedContinuation<Void, Never>) {
    queue.async { [self] in
      // A waiting group has its own block in the queue, ahead of this one.
      guard waiting.withLock({ $0.isIdle }) else { return awaitIdle(end) }
      end.resume()
    }
  }

  /// Makes relaxed commits durable, empties the log and closes the file; after `stop`.
  func close() async throws {
    try await withCheckedThrowingContinuation { (end: CheckedContinuation<Void, any Error>) in
      queue.async { [self] in
        end.resume(with: Result { try closeConnection() })
      }
    }
  }

  // MARK: On the queue

  private func commitGroup() {
    let group = waiting.withLock { $0.takeGroup() }
    let outcomes = refusal().map { error in group.map { _ in .failure(error) } } ?? commit(group)
    for (submission, outcome) in zip(group, outcomes) { submission.completion(outcome) }
    if failure == nil {
      if isDurable { connection.extendLog(pagesMax: logPagesMax) }
      checkpointer.groupEnded(logPages: connection.logPages) { [self] result in
        // The checkpointer's thread has moved nearly everything; finishing here lets the log start
        // over.
        queue.async { [self] in finishCheckpoint(after: result) }
      }
    }
    // Each group gets a new block, so that a checkpoint or the end can come in between.
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
      // Nothing of the group was applied. Committed alone, each batch fails only for its own fault.
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
    // NORMAL writes the log in the same order without waiting for the disk; the next FULL commit
    // syncs the whole log, including all earlier commits.
    try connection.execute("pragma synchronous = \(isSynced ? "full" : "normal")")
    progress.isFullySynchronous = isSynced
  }

  /// Refuses all further writes after a failed sync.
  ///
  /// The system may have dropped what it could not write, and a commit that was reported as failed
  /// may be found in the log after a restart. Only a restart shows which.
  private func noteIfBroken(_ error: any Error) {
    guard let cause = (error as? StorageError)?.cause as? SQLiteFailure, cause.isSyncFailure,
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

  /// Why a group cannot even be tried.
  ///
  /// Either the disk has failed, or endless reads keep the log from starting over.
  private func refusal() -> (any Error)? {
    if let failure { return failure }
    guard connection.logPages >= logPagesMax * 4 else { return nil }
    do {
      guard try !connection.checkpoint(.restart) else { return nil }
      return StorageError(
        .full,
        "the log of \(connection.path) is full because a read does not end; retry later"
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
    // Moving the log to the file takes as much room as the log.
    if isDurable { connection.cutLog() }
    // Only an emptied log is removed. A log that the disk may have lost in part must not be moved
    // to the file: the next process reads it with its checksums.
    try unlessFull {
      if let missing = try room.missingBytes(for: connection) {
        logger.warning("\(room.advice(missingBytes: missing))")
      } else {
        connection.keepLogOnClose(try !connection.checkpoint(.truncate))
      }
    }
  }

  /// Ignores a full disk, so that the end goes on.
  ///
  /// A checkpoint syncs the log before it moves a page; pages that it could not move stay in the
  /// log for the next start.
  private func unlessFull(_ body: () throws -> Void) throws {
    do {
      try body()
    } catch let error as StorageError where error.isOnlyFull {
      logger.warning("\(error.message); until then the log keeps what was written")
    }
  }

  private func finishCheckpoint(after result: Result<Void, any Error>) {
    do {
      try result.get()
      guard failure == nil, connection.isOpen else { return }
      // Reads in close succession would keep the log for ever: wait for the present ones.
      _ = try connection.checkpoint(connection.logPages < logPagesMax * 2 ? .passive : .restart)
    } catch {
      // The log just grows until the next attempt; commits go on, unless the disk has lost some.
      noteIfBroken(error)
      logger.debug("checkpoint failed", metadata: ["error": "\(error)"])
    }
  }
}

/// The batches that wait for the writer, in order and within bounds.
struct WaitingBatches {
  private var submissions: [GroupWriter.Submission] = []
  private var bytes = 0
  private var isRunning = false
  var isClosed = false

  var isIdle: Bool { submissions.isEmpty && !isRunning }

  /// Queues a batch; `isFirst` asks the caller to start a group.
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

  /// The next group; at least one batch, however large.
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

  /// Whether another group is to follow.
  mutating func groupEnded() -> Bool {
    isRunning = !submissions.isEmpty
    return isRunning
  }
}
