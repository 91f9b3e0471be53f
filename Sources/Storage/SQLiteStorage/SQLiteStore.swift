package import Logging
package import StorageEngine
import Synchronization

/// The storage engine for a data folder: SQLite with one writer and several readers.
///
/// Waiting commits share a transaction and one wait for the disk. Completions are called in order
/// of the sequences on the writer's queue, never inside `submit`. The folder belongs to one process
/// at a time.
package final class SQLiteStore: OrderedStorage {
  /// How a store is opened.
  package struct Configuration: Sendable {
    /// Whether synced commits survive power loss; false for data that ends with the process.
    package var isDurable: Bool
    /// The reads that run at the same time; further reads wait.
    ///
    /// Each holds a connection with a cache of its own.
    package var readersMax: Int
    /// The file's size beyond which commits throw `.full`; nil leaves it to the disk.
    package var bytesMax: Int?
    /// The size of the log, in pages, from which pages are moved to the file.
    ///
    /// Endless reads can keep them in the log; at four times this size, commits throw `.full`.
    package var logPagesMax: Int
    /// The name of a file system registered with SQLite; nil for the machine's.
    package var fileSystem: String?
    /// How many bytes the disk of a folder still has; nil when that is not known.
    package var bytesFree: @Sendable (_ folder: String) -> Int?

    /// Durable, four readers, as large as the disk allows, and 80 MB of log.
    ///
    /// Such a log is large enough that hot pages are moved once for many commits, and small enough
    /// to be read in a moment after a crash.
    package init(
      isDurable: Bool = true,
      readersMax: Int = 4,
      bytesMax: Int? = nil,
      logPagesMax: Int = 20_000,
      fileSystem: String? = nil,
      bytesFree: (@Sendable (_ folder: String) -> Int?)? = nil
    ) {
      self.isDurable = isDurable
      self.readersMax = readersMax
      self.bytesMax = bytesMax
      self.logPagesMax = logPagesMax
      self.fileSystem = fileSystem
      self.bytesFree = bytesFree ?? CheckpointRoom.systemBytesFree
    }
  }

  /// The file inside the data folder.
  package static let fileName = "store.sqlite"

  static let closed = StorageError(.closed, "the store is closed")

  static let pageBytes = 4096

  /// The lock on the folder, held until `close` or the end.
  private let lock: Mutex<FolderLock?>
  private let writer: GroupWriter
  private let checkpointer: Checkpointer
  private let readers: ReaderPool

  /// Opens a folder's store, creating both if necessary; blocks meanwhile.
  ///
  /// Throws `StorageError`: `.inUse` naming the process that holds the folder; `.corrupt` when the
  /// file is damaged or belongs to another program or a newer version, in which case nothing is
  /// changed; `.failed` when the folder cannot be made or written. `onFailure` is called once, on
  /// the writer's queue, when the disk has failed to keep a commit: from then on `failure` says why
  /// writes are refused.
  package init(
    folder: String,
    configuration: Configuration = Configuration(),
    logger: Logger,
    onFailure: @escaping @Sendable (StorageError) -> Void = { _ in }
  ) throws {
    let lock = try FolderLock(folder: folder)
    let path = "\(folder)/\(Self.fileName)"
    let fileSystem = configuration.fileSystem
    let files = try FileAccess(vfs: fileSystem)
    if fileSystem == nil { DatabaseFile.reserve(path) }
    try DatabaseFile.check(path, in: files)
    if configuration.isDurable { try Self.rewriteLog(path, in: files) }
    let room = CheckpointRoom(folder: folder, bytesFree: configuration.bytesFree)
    let connection = try Self.openWriter(path, configuration)
    try Self.emptyLog(connection, room, logger)
    guard let sequence = try connection.number(DatabaseFile.selectSequence),
      (0..<Int64.max / 2).contains(sequence)
    else {
      throw StorageError(.corrupt, DatabaseFile.lostSequence(path))
    }
    let log = try Connection(
      path: path,
      vfs: fileSystem,
      pragmas: Self.synchronous(configuration)
    )
    log.keepLogOnClose()
    checkpointer = Checkpointer(
      connection: log,
      schedule: CheckpointSchedule(pagesMax: configuration.logPagesMax)
    )
    writer = GroupWriter(
      connection: connection,
      checkpointer: checkpointer,
      sequence: UInt64(sequence),
      isDurable: configuration.isDurable,
      logPagesMax: configuration.logPagesMax,
      room: room,
      logger: logger,
      onFailure: onFailure
    )
    self.lock = Mutex(lock)
    readers = ReaderPool(connectionsMax: max(configuration.readersMax, 1)) {
      let reader = try Connection(path: path, vfs: fileSystem, pragmas: Self.readerPragmas)
      reader.keepLogOnClose()
      return reader
    }
  }

  /// Runs `body` on a read transaction of one of the pooled connections.
  ///
  /// `body` runs at once on the caller's executor: nearly all reads are answered from memory in
  /// microseconds, less than a change of threads costs. The pool's bound also bounds the threads
  /// that wait for a slow disk.
  package func read<Result: Sendable>(
    _ body: (any StorageSnapshot) throws -> sending Result
  ) async throws -> sending Result {
    let connection = try await readers.acquire()
    defer { readers.release(connection) }
    let snapshot = try SQLiteSnapshot(connection)
    defer { snapshot.end() }
    return try body(snapshot)
  }

  package func submit(
    _ batch: StorageBatch,
    expecting: [VersionExpectation],
    durability: Durability,
    completion: @escaping @Sendable (Result<UInt64, any Error>) -> Void
  ) {
    writer.submit(
      GroupWriter.Submission(
        batch: batch,
        expecting: expecting,
        durability: durability,
        completion: completion,
        bytes: batch.bytes
      )
    )
  }

  package var sequence: UInt64 { writer.sequence }

  /// Why writes are refused until the store is opened anew; nil while all is well.
  package var failure: StorageError? { writer.failure }

  package func close() async throws {
    await readers.close()
    await writer.stop()
    await checkpointer.stop()
    // Releasing the lock comes last, so that the folder is free whatever `writer.close` does.
    defer { lock.withLock { $0 = nil } }
    try await writer.close()
  }

  private static func openWriter(
    _ path: String,
    _ configuration: Configuration
  ) throws -> Connection {
    let writer = try Connection(
      path: path,
      create: true,
      vfs: configuration.fileSystem,
      pragmas: "pragma page_size = \(pageBytes); pragma cache_size = -65536"
    )
    try DatabaseFile.create(writer)
    try DatabaseFile.upgrade(writer)
    try writer.execute(
      "pragma journal_mode = wal"
    )
    try writer.execute(
      "pragma journal_size_limit = \(configuration.logPagesMax * 2 * pageBytes)"
    )
    try writer.execute(synchronous(configuration))
    writer.keepLogOnClose()
    if let bytes = configuration.bytesMax {
      try writer.execute("pragma max_page_count = \(max(bytes / pageBytes, 1))")
    }
    return writer
  }

  /// Overwrites the log that an earlier process left with its own contents, and syncs it.
  ///
  /// After a failed sync the system shows a log that the medium may not hold, takes it for safe,
  /// and reports no error at its next sync. Moving pages from such a log to the file would damage
  /// the file at a power loss; once written again, they are either synced or fail.
  ///
  /// What the process had reserved behind the log's end is given back first: on a full disk it is
  /// the room that this start needs.
  private static func rewriteLog(_ path: String, in files: FileAccess) throws {
    do {
      try files.cutSpare(ofLog: "\(path)-wal")
      try files.rewrite("\(path)-wal")
    } catch let error as StorageError where error.isOnlyFull {
      // A full disk is ignored, as in `emptyLog`.
    }
  }

  /// Moves to the file what an earlier process left in the log, and syncs the file.
  private static func emptyLog(
    _ writer: Connection,
    _ room: CheckpointRoom,
    _ logger: Logger
  ) throws {
    do {
      if let missing = try room.missingBytes(for: writer) {
        logger.warning("\(room.advice(missingBytes: missing))")
        return
      }
      _ = try writer.checkpoint(.truncate)
    } catch let error as StorageError where error.isOnlyFull {
      // Reads and operations that free space must go on; commits meet the same error themselves.
    }
  }

  /// The full-fsync settings matter on macOS, where a plain sync stops at the drive's cache.
  private static func synchronous(_ configuration: Configuration) -> String {
    configuration.isDurable
      ? "pragma synchronous = full; pragma fullfsync = on; pragma checkpoint_fullfsync = on"
      : "pragma synchronous = off"
  }

  private static let readerPragmas = """
    pragma mmap_size = 1073741824; pragma cache_size = -16384; pragma query_only = on
    """
}

extension StorageBatch {
  /// The approximate size of the batch in memory.
  fileprivate var bytes: Int {
    operations.reduce(64) { sum, operation in
      switch operation {
      case .put(_, let key, let value), .putAtSequence(_, let key, let value):
        sum + key.count + value.count + 32
      case .delete(_, let key): sum + key.count + 32
      case .deleteRange(_, let from, let to): sum + (from?.count ?? 0) + (to?.count ?? 0) + 32
      }
    }
  }
}
