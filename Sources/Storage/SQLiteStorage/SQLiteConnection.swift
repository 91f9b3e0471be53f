import CSQLite
import StorageEngine

/// A SQLite connection with its prepared statements.
// Unchecked, because only one thread uses it at a time: the reader pool lends it, or the writer's
// queue owns it.
final class SQLiteConnection: @unchecked Sendable {
  private let handle: OpaquePointer
  let path: String
  private var statements: [Keyspace: [Statement.Kind: [Statement]]] = [:]
  private var tables: [Keyspace: KeyspaceTable] = [:]
  private var existing: Set<Keyspace> = []
  private var plain: [String: Statement] = [:]
  /// The number of pages in the write-ahead log after this connection's last commit.
  private(set) var logPages = 0
  /// The log's pages and the size of its file at the last check of `extendLog`.
  private var extendedThrough: (pages: Int, size: Int64) = (0, 0)
  private var extendsLog = true
  private(set) var isOpen = true

  /// The number of bytes by which the log's file is extended at a time.
  private static let logReserveBytes: Int64 = 1 << 20
  /// The zeros that are written at a time.
  ///
  /// SQLite itself writes at most 128 KiB at once.
  private static let zeros = [UInt8](repeating: 0, count: 64 << 10)

  /// The wait for a lock that only another program can hold, such as a `sqlite3` shell.
  static let busyMilliseconds: Int32 = 5000

  /// Opens the file in SQLite's file system `vfs`, and creates it if `create` is true.
  init(path: String, create: Bool = false, vfs: String?, pragmas: String) throws {
    self.path = path
    var handle: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0)
    let code = sqlite3_open_v2(path, &handle, flags, vfs)
    guard code == SQLITE_OK, let handle else {
      defer { sqlite3_close_v2(handle) }
      throw Self.error(code, handle, path)
    }
    self.handle = handle
    sqlite3_extended_result_codes(handle, 1)
    sqlite3_busy_timeout(handle, Self.busyMilliseconds)
    try execute(pragmas)
    // The store decides when to checkpoint. Registering a hook also disables SQLite's automatic
    // checkpoints.
    sqlite3_wal_hook(
      handle,
      { context, _, _, pages in
        guard let context else { return SQLITE_OK }
        Unmanaged<SQLiteConnection>.fromOpaque(context).takeUnretainedValue().logPages = Int(pages)
        return SQLITE_OK
      },
      // Unretained, because the handle that calls the hook is closed before this object is freed.
      Unmanaged.passUnretained(self).toOpaque()
    )
  }

  deinit {
    close()
  }

  /// Closes the file.
  ///
  /// Only `isOpen` may be used afterwards.
  func close() {
    guard isOpen else { return }
    isOpen = false
    plain = [:]
    statements = [:]
    sqlite3_close_v2(handle)
  }

  /// True if a transaction is open.
  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// Runs statements that return nothing and are too rare to be prepared.
  func execute(_ sql: String) throws {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw error(code) }
  }

  /// Runs a statement that returns nothing, and keeps it prepared for later calls.
  func run(_ sql: String, _ argument: Int64? = nil) throws {
    let statement = try prepared(sql)
    defer { statement.reset() }
    if let argument { try statement.bind(1, argument) }
    _ = try statement.step()
  }

  /// Returns the first column of the first row as a number; nil if there is no row.
  func number(_ sql: String) throws -> Int64? {
    let statement = try prepared(sql)
    defer { statement.reset() }
    return try statement.step() ? statement.number(0) : nil
  }

  private func prepared(_ sql: String) throws -> Statement {
    if let statement = plain[sql] { return statement }
    let statement = try Statement(sql, self)
    plain[sql] = statement
    return statement
  }

  /// Ends a transaction, whatever state an error left it in.
  func rollBack() {
    guard isInTransaction else { return }
    // Many errors roll back automatically. If this fails too, the caller abandons the connection.
    // The statement is prepared, because every read ends with it.
    try? run("rollback")
  }

  /// The extent of a checkpoint.
  enum Checkpoint {
    /// Moves the pages that it can move without waiting for any reader.
    case passive
    /// Waits briefly for readers of the log, so that the next commit can overwrite it.
    case restart
    /// Restarts the log like `restart`, and also frees its disk space.
    case truncate

    fileprivate var mode: Int32 {
      switch self {
      case .passive: SQLITE_CHECKPOINT_PASSIVE
      case .restart: SQLITE_CHECKPOINT_RESTART
      case .truncate: SQLITE_CHECKPOINT_TRUNCATE
      }
    }
  }

  /// The wait for readers.
  ///
  /// A longer read delays a checkpoint, but not commits.
  static let readersWaitMilliseconds: Int32 = 200

  /// The wait for readers when commits would otherwise be refused.
  ///
  /// On a busy machine, a read of a few milliseconds can take this long.
  static let lastWaitMilliseconds: Int32 = 2000

  /// Moves pages from the log to the file; returns true if the checkpoint is complete.
  func checkpoint(
    _ kind: Checkpoint = .passive,
    waiting milliseconds: Int32 = readersWaitMilliseconds
  ) throws -> Bool {
    if kind == .restart { sqlite3_busy_timeout(handle, milliseconds) }
    defer { if kind == .restart { sqlite3_busy_timeout(handle, Self.busyMilliseconds) } }
    var log: Int32 = 0
    var moved: Int32 = 0
    let code = sqlite3_wal_checkpoint_v2(handle, nil, kind.mode, &log, &moved)
    guard code == SQLITE_OK || code & 0xFF == SQLITE_BUSY else { throw error(code) }
    return code == SQLITE_OK && log == moved
  }

  /// Keeps zeros after the content of the log, so that commits fill them and sync no new file size.
  ///
  /// A sync that also has to extend a file takes about twice as long. SQLite treats the zeros as
  /// the end of the log. Does nothing beyond `pagesMax`, and after `cutLog`. A failure has no
  /// effect here; a commit that lacks the space reports it.
  func extendLog(pagesMax: Int) {
    if logPages < extendedThrough.pages { extendedThrough.size = 0 }
    extendedThrough.pages = logPages
    let reserve = min(Self.logReserveBytes, Int64(pagesMax / 2) * LogLayout.frameBytes)
    guard extendsLog, logPages < pagesMax, logBytes + reserve / 2 > extendedThrough.size,
      let (file, methods) = logFile
    else { return }
    var size: Int64 = 0
    guard methods.xFileSize(file, &size) == SQLITE_OK else { return }
    let end = logBytes + reserve
    while size < end {
      let count = min(Int64(Self.zeros.count), end - size)
      guard methods.xWrite(file, Self.zeros, Int32(count), size) == SQLITE_OK else { return }
      size += count
    }
    extendedThrough.size = size
  }

  /// Frees the space that `extendLog` reserved, and stops reserving any.
  ///
  /// The space is needed elsewhere. Before this connection has committed, it does not know the end
  /// of the log and frees nothing.
  func cutLog() {
    let knowsEnd = logPages > 0 && extendedThrough.size > 0
    extendsLog = false
    guard knowsEnd, let (file, methods) = logFile else { return }
    var size: Int64 = 0
    // If the space cannot be freed, it stays reserved.
    guard methods.xFileSize(file, &size) == SQLITE_OK, size > logBytes else { return }
    _ = methods.xTruncate(file, logBytes)
    extendedThrough.size = 0
  }

  /// Returns the number of bytes by which the file must grow to hold the content of the log.
  func growthOfCheckpoint() throws -> Int {
    var file: UnsafeMutablePointer<sqlite3_file>?
    var size: Int64 = 0
    guard
      sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK,
      let file, let methods = file.pointee.pMethods?.pointee,
      methods.xFileSize(file, &size) == SQLITE_OK
    else { return 0 }
    let pages = try number("pragma page_count") ?? 0
    return max(0, Int(pages) * SQLiteStore.pageBytes - Int(size))
  }

  /// The size of the log's pages in bytes, as of this connection's last commit.
  private var logBytes: Int64 { LogLayout.headerBytes + Int64(logPages) * LogLayout.frameBytes }

  private var logFile: (UnsafeMutablePointer<sqlite3_file>, sqlite3_io_methods)? {
    var file: UnsafeMutablePointer<sqlite3_file>?
    guard
      sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) == SQLITE_OK,
      let file, let methods = file.pointee.pMethods?.pointee
    else { return nil }
    return (file, methods)
  }

  /// Sets whether the log stays in place if this connection is the last to close.
  func keepLogOnClose(_ keeps: Bool = true) {
    hearth_keep_log_on_close(handle, keeps ? 1 : 0)
  }

  // MARK: Keyspaces

  /// Returns true if the keyspace has a table, as seen by the open transaction.
  func exists(_ keyspace: Keyspace) throws -> Bool {
    if existing.contains(keyspace) { return true }
    guard try hasTable(table(of: keyspace).name) else { return false }
    existing.insert(keyspace)
    return true
  }

  /// Returns true if a table exists, as seen by the open transaction.
  func hasTable(_ name: String) throws -> Bool {
    let table = try prepared("select 1 from sqlite_schema where type = 'table' and name = ?1")
    defer { table.reset() }
    try table.bind(1, name)
    return try table.step()
  }

  private func table(of keyspace: Keyspace) -> KeyspaceTable {
    if let table = tables[keyspace] { return table }
    let table = KeyspaceTable(keyspace)
    tables[keyspace] = table
    return table
  }

  /// Creates the keyspace's table.
  ///
  /// Call `forget` if the transaction is rolled back.
  func create(_ keyspace: Keyspace) throws {
    try execute(table(of: keyspace).creation)
    existing.insert(keyspace)
  }

  /// Removes keyspaces from the cache whose tables were rolled back.
  func forget(_ keyspaces: Set<Keyspace>) {
    for keyspace in keyspaces {
      existing.remove(keyspace)
      statements[keyspace] = nil
    }
  }

  /// Returns a range of a keyspace's keys for a statement; nil if the range is certainly empty.
  func range(_ keyspace: Keyspace, from: [UInt8]?, to: [UInt8]?) -> KeyspaceTable.Range? {
    table(of: keyspace).range(from: from, to: to)
  }

  /// Lends a statement for an existing keyspace to `body`.
  ///
  /// A nested use of the same kind gets another statement.
  func with<Result>(
    _ kind: Statement.Kind,
    _ keyspace: Keyspace,
    _ body: (Statement, KeyspaceTable) throws -> Result
  ) throws -> Result {
    let table = table(of: keyspace)
    let statement = try take(kind, table)
    defer {
      statement.reset()
      // The entry is missing if the body's transaction was rolled back and the keyspace was
      // removed.
      statements[keyspace]?[kind, default: []].append(statement)
    }
    return try body(statement, table)
  }

  private func take(_ kind: Statement.Kind, _ table: KeyspaceTable) throws -> Statement {
    let keyspace = table.keyspace
    if let statement = statements[keyspace, default: [:]][kind, default: []].popLast() {
      return statement
    }
    return try Statement(table.sql(kind), self)
  }

  // MARK: Errors

  func error(_ code: Int32) -> StorageError { Self.error(code, handle, path) }

  func prepare(_ sql: String) throws -> OpaquePointer {
    var statement: OpaquePointer?
    let code = sqlite3_prepare_v3(
      handle,
      sql,
      -1,
      UInt32(SQLITE_PREPARE_PERSISTENT),
      &statement,
      nil
    )
    guard code == SQLITE_OK, let statement else { throw error(code) }
    return statement
  }

  private static func error(_ code: Int32, _ handle: OpaquePointer?, _ path: String) -> StorageError
  {
    let text = handle.flatMap { sqlite3_errmsg($0) } ?? sqlite3_errstr(code)
    let words = text.map { String(cString: $0) } ?? "code \(code)"
    let systemNumber = handle.map { hearth_system_errno($0) } ?? 0
    return StorageError(sqliteCode: code, words: words, systemNumber: systemNumber, path: path)
  }
}
