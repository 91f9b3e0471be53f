package import Logging
package import StorageEngine
import Synchronization

/// The storage engine for a data folder: SQLite with one writer and several readers.
///
/// Waiting commits share a transaction and wait for the disk only once. Completions are called on
/// the writer's queue in the order of the sequences, never inside `submit`. Only one process at a
/// time can use the folder.
package final class SQLiteStore: OrderedStorage {
  /// The settings with which a store is opened.
  package struct Configuration: Sendable {
    /// True if synced commits survive power loss.
    ///
    /// Use false for data of a single process run.
    package var isDurable: Bool
    /// The maximum number of concurrent reads.
    ///
    /// Further reads wait.
    ///
    /// Each read uses a connection with its own cache.
    package var readersMax: Int
    /// The file size beyond which commits throw `.full`; nil if only the disk limits it.
    package var bytesMax: Int?
    /// The size of the log, in pages, at which pages are moved to the file.
    ///
    /// A read that does not end can keep them in the log. At four times this size, commits throw
    /// `.full`.
    package var logPagesMax: Int
    /// The name of a file system registered in SQLite; nil for the default.
    package var fileSystem: String?
    /// The function that returns the bytes free on the disk of a folder; nil if unknown.
    package var bytesFree: @Sendable (_ folder: String) -> Int?

    /// Creates a configuration.
    ///
    /// By default the store is durable, has four readers, and can use the whole disk, with 80 MB of
    /// log. Such a log is large enough that frequently changed pages are moved only once for many
    /// commits. It is small enough to be read quickly after a crash.
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
      self.bytesFree = bytesFree ?? CheckpointSpace.systemBytesFree
    }
  }

  /// The name of the database file in the data folder.
  package static let fileName = "store.sqlite"

  static let closed = StorageError(.closed, "the store is closed")

  static let pageBytes = 4096

  /// The lock on the folder, held until the store is closed or released.
  private let lock: Mutex<FolderLock?>
  private let writer: GroupWriter
  private let checkpointer: Checkpointer
  private let readers: ReaderPool

  /// Opens the store of a folder and creates both if necessary.
  ///
  /// The call blocks.
  ///
  /// Throws `StorageError` with one of these kinds:
  ///
  /// - `.inUse` with the process that uses the folder.
  /// - `.corrupt` if the file is damaged, or belongs to another program or a newer version. In this
  ///   case nothing is changed.
  /// - `.failed` if the folder cannot be created or written.
  ///
  /// `onFailure` is called at most once, on the writer's queue, if the disk fails to keep a commit.
  /// After that, `failure` contains the error with which writes are refused.
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
    let room = CheckpointSpace(folder: folder, bytesFree: configuration.bytesFree)
    let connection = try Self.openWriter(path, configuration)
    try Self.emptyLog(connection, room, logger)
    guard let sequence = try connection.number(DatabaseFile.selectSequence),
      (0..<Int64.max / 2).contains(sequence)
    else {
      throw StorageError(.corrupt, DatabaseFile.lostSequence(path))
    }
    let log = try SQLiteConnection(
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
      let reader = try SQLiteConnection(path: path, vfs: fileSystem, pragmas: Self.readerPragmas)
      reader.keepLogOnClose()
      return reader
    }
  }

  /// Runs `body` on a read transaction of one of the pooled connections.
  ///
  /// `body` runs immediately on the caller's executor. Nearly all reads are served from memory in
  /// microseconds, faster than a switch of threads. The size of the pool also limits the number of
  /// threads that wait for a slow disk.
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

  /// The error with which writes are refused until the store is opened again; nil if there is none.
  package var failure: StorageError? { writer.failure }

  package func close() async throws {
    await readers.close()
    await writer.stop()
    await checkpointer.stop()
    // The lock is released last and in any case, so that the folder is free even if `writer.close`
    // throws.
    defer { lock.withLock { $0 = nil } }
    try await writer.close()
  }

  private static func openWriter(
    _ path: String,
    _ configuration: Configuration
  ) throws -> SQLiteConnection {
    let writer = try SQLiteConnection(
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

  /// Overwrites the log of an earlier process with its own content, and syncs it.
  ///
  /// After a failed sync the system shows a log that the disk may not contain. It considers the log
  /// synced and reports no error at the next sync. Moving pages from such a log to the file could
  /// damage the file at a power loss. Pages that are written again are either synced or fail.
  ///
  /// The space that the process reserved after the end of the log is freed first. On a full disk
  /// this start needs that space.
  private static func rewriteLog(_ path: String, in files: FileAccess) throws {
    do {
      try files.cutSpare(ofLog: "\(path)-wal")
      try files.rewrite("\(path)-wal")
    } catch let error as StorageError where error.isOnlyFull {
      // A full disk is ignored here, as in `emptyLog`.
    }
  }

  /// Moves the log of an earlier process to the file, and syncs the file.
  private static func emptyLog(
    _ writer: SQLiteConnection,
    _ room: CheckpointSpace,
    _ logger: Logger
  ) throws {
    do {
      if let missing = try room.missingBytes(for: writer) {
        // The sentence says how much space to free, and where.
        logger.warning("\(room.advice(missingBytes: missing))")
        return
      }
      _ = try writer.checkpoint(.truncate)
    } catch let error as StorageError where error.isOnlyFull {
      // Reads and operations that free space must stay possible. Commits report the same error
      // themselves.
    }
  }

  /// Returns the pragmas for syncing.
  ///
  /// The full-fsync settings are for macOS, where a plain sync stops at the drive's cache.
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
