package import Logging
package import StorageEngine
import Synchronization

/// The storage engine that keeps a data folder: SQLite with one writer and several readers.
///
/// Commits that wait share a transaction and one wait for the disk. Completions are called in order
/// of the sequences on the writer's queue, never inside `submit`. The folder belongs to one process
/// at a time.
package final class SQLiteStore: StorageEngine {
  /// How a store is opened.
  package struct Configuration: Sendable {
    /// Whether synced commits survive power loss; false for data that ends with the process.
    package var isDurable: Bool
    /// Reads that run at the same time; more wait.
    ///
    /// Each holds a connection with a cache of its own.
    package var readersMax: Int
    /// The file's size beyond which commits throw `.full`; nil leaves it to the disk.
    package var bytesMax: Int?
    /// Pages in the log at which they begin to be moved to the file.
    ///
    /// Reads that do not end can keep them there; at four times as many, commits throw `.full`.
    package var logPagesMax: Int
    /// The name of a file system registered with SQLite; nil for the machine's.
    package var fileSystem: String?

    /// Durable, four readers, as large as the disk allows, and 80 MB of log: large enough that hot
    /// pages are moved once for many commits, small enough to be read in a moment after a crash.
    package init(
      isDurable: Bool = true,
      readersMax: Int = 4,
      bytesMax: Int? = nil,
      logPagesMax: Int = 20_000,
      fileSystem: String? = nil
    ) {
      self.isDurable = isDurable
      self.readersMax = readersMax
      self.bytesMax = bytesMax
      self.logPagesMax = logPagesMax
      self.fileSystem = fileSystem
    }
  }

  /// The file inside the data folder.
  package static let fileName = "store.sqlite"

  static let closed = StorageError(.closed, "the store is closed")

  private static let pageBytes = 4096

  /// Held until `close` or the end.
  private let lock: Mutex<FolderLock?>
  private let writer: GroupWriter
  private let checkpointer: Checkpointer
  private let readers: ReaderPool

  /// Opens the store of a folder, making both if need be; blocks while it does.
  ///
  /// Throws `StorageError`: `.inUse` naming the process that holds the folder, `.corrupt` when the
  /// file is damaged, of another program or of a newer version (nothing is changed then), `.failed`
  /// when the folder cannot be made or written. `onFailure` is called once, on the writer's queue,
  /// when the disk has failed to keep a commit: from then on `failure` says why writes are refused.
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
    try DatabaseFile.check(path, in: files)
    if configuration.isDurable { try Self.rewriteLog(path, in: files) }
    let connection = try Self.openWriter(path, configuration)
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
  /// It runs at once on the executor of the call: nearly all reads are answered from memory in
  /// microseconds, less than a change of threads costs. The pool's bound is also the bound on
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
    _ batch: WriteBatch,
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
    // Its last; whatever comes of it, the folder is free afterwards.
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
    try writer.execute("pragma journal_mode = wal; pragma journal_size_limit = 67108864;")
    try writer.execute(synchronous(configuration))
    writer.keepLogOnClose()
    if let bytes = configuration.bytesMax {
      try writer.execute("pragma max_page_count = \(max(bytes / pageBytes, 1))")
    }
    try emptyLog(writer)
    return writer
  }

  /// Writes the log that an earlier process left over itself, and syncs it.
  ///
  /// After a failed sync the system shows a log that the medium may not hold, takes it for safe, and
  /// its next sync does not tell. Pages moved to the file from such a log are a damaged file when
  /// the power goes; written anew, they are synced or fail.
  private static func rewriteLog(_ path: String, in files: FileAccess) throws {
    do {
      try files.rewrite("\(path)-wal")
    } catch let error as StorageError where error.isOnlyFull {
      // As when emptying it.
    }
  }

  /// Moves what an earlier process left in the log to the file, and syncs that.
  private static func emptyLog(_ writer: Connection) throws {
    do {
      _ = try writer.checkpoint(.truncate)
    } catch let error as StorageError where error.isOnlyFull {
      // Reads and what frees space must go on; commits meet the same error by themselves.
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

extension WriteBatch {
  /// What the batch holds in memory, about.
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
