import CSQLite
import StorageEngine

/// One SQLite connection with its prepared statements.
// Unchecked: one thread at a time uses it; the reader pool lends it, or the writer's queue owns it.
final class Connection: @unchecked Sendable {
  private let handle: OpaquePointer
  let path: String
  private var statements: [Keyspace: [Statement.Kind: [Statement]]] = [:]
  private var tables: [Keyspace: KeyspaceTable] = [:]
  private var existing: Set<Keyspace> = []
  private var plain: [String: Statement] = [:]
  /// Pages in the write-ahead log after this connection's last commit.
  private(set) var logPages = 0
  /// The log's pages and its file's size when `extendLog` last looked.
  private var extendedThrough: (pages: Int, size: Int64) = (0, 0)
  private var extendsLog = true
  private(set) var isOpen = true

  /// How far the log's file is made longer at a time.
  private static let logReserveBytes: Int64 = 1 << 20
  /// What is written at a time; SQLite writes at most 128 KiB at once.
  private static let zeros = [UInt8](repeating: 0, count: 64 << 10)

  /// How long to wait for a lock that only another program can hold, such as a `sqlite3` shell.
  static let busyMilliseconds: Int32 = 5000

  /// Opens the file, creating it if `create` is set, in SQLite's file system named `vfs`.
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
    // The store decides on checkpoints. Registering a hook also turns off SQLite's own.
    sqlite3_wal_hook(
      handle,
      { context, _, _, pages in
        guard let context else { return SQLITE_OK }
        Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue().logPages = Int(pages)
        return SQLITE_OK
      },
      // Unretained: the handle that calls the hook is closed before this object is freed.
      Unmanaged.passUnretained(self).toOpaque()
    )
  }

  deinit {
    close()
  }

  /// Closes the file; only `isOpen` may be used afterwards.
  func close() {
    guard isOpen else { return }
    isOpen = false
    plain = [:]
    statements = [:]
    sqlite3_close_v2(handle)
  }

  /// Whether a transaction is open.
  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// Runs statements that return nothing and are not worth preparing.
  func execute(_ sql: String) throws {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw error(code) }
  }

  /// Runs a prepared statement that returns nothing.
  func run(_ sql: String, _ argument: Int64? = nil) throws {
    let statement = try prepared(sql)
    defer { statement.reset() }
    if let argument { try statement.bind(1, argument) }
    _ = try statement.step()
  }

  /// The first column of the first row as a number, or nil without a row.
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

  /// Leaves a transaction, whatever state an error left it in.
  func rollBack() {
    guard isInTransaction else { return }
    // Many errors roll back by themselves; if this fails too, the caller gives up the connection.
    // Prepared, because every read ends with it.
    try? run("rollback")
  }

  /// How far a checkpoint goes.
  enum Checkpoint {
    /// Moves what it can without waiting for anyone.
    case passive
    /// Waits a moment for readers of the log, so that the next commit starts the log over.
    case restart
    /// Like `restart`, and also gives back the log's space.
    case truncate

    fileprivate var mode: Int32 {
      switch self {
      case .passive: SQLITE_CHECKPOINT_PASSIVE
      case .restart: SQLITE_CHECKPOINT_RESTART
      case .truncate: SQLITE_CHECKPOINT_TRUNCATE
      }
    }
  }

  /// The wait for readers; a longer read holds up a checkpoint, but not the commits.
  static let readersWaitMilliseconds: Int32 = 200

  /// Moves pages from the log to the file; true when it went as far as asked.
  func checkpoint(_ kind: Checkpoint = .passive) throws -> Bool {
    if kind == .restart { sqlite3_busy_timeout(handle, Self.readersWaitMilliseconds) }
    defer { if kind == .restart { sqlite3_busy_timeout(handle, Self.busyMilliseconds) } }
    var log: Int32 = 0
    var moved: Int32 = 0
    let code = sqlite3_wal_checkpoint_v2(handle, nil, kind.mode, &log, &moved)
    guard code == SQLITE_OK || code & 0xFF == SQLITE_BUSY else { throw error(code) }
    return code == SQLITE_OK && log == moved
  }

  /// Keeps zeros behind what the log holds, so that commits fill them and sync no new file size.
  ///
  /// A sync that also has to make a file longer takes about twice as long. SQLite takes the zeros
  /// for the end of the log. Does nothing beyond `pagesMax`, and after `cutLog`. A failure changes
  /// nothing: the commit that lacks the space meets it.
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

  /// Gives back what `extendLog` took, for good: others need the room more.
  ///
  /// Before this connection has committed, it does not know how far the log goes.
  func cutLog() {
    let knowsEnd = logPages > 0 && extendedThrough.size > 0
    extendsLog = false
    guard knowsEnd, let (file, methods) = logFile else { return }
    var size: Int64 = 0
    // What cannot be given back stays where it is.
    guard methods.xFileSize(file, &size) == SQLITE_OK, size > logBytes else { return }
    _ = methods.xTruncate(file, logBytes)
    extendedThrough.size = 0
  }

  /// By how much the file has to grow before it can hold all that the log has.
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

  /// The bytes that the log's pages take, as of this connection's last commit.
  private var logBytes: Int64 { LogLayout.headerBytes + Int64(logPages) * LogLayout.frameBytes }

  private var logFile: (UnsafeMutablePointer<sqlite3_file>, sqlite3_io_methods)? {
    var file: UnsafeMutablePointer<sqlite3_file>?
    guard
      sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) == SQLITE_OK,
      let file, let methods = file.pointee.pMethods?.pointee
    else { return nil }
    return (file, methods)
  }

  /// Sets whether this connection, if it is the last to close, leaves the log in place.
  func keepLogOnClose(_ keeps: Bool = true) {
    hearth_keep_log_on_close(handle, keeps ? 1 : 0)
  }

  // MARK: Keyspaces

  /// Whether the keyspace has a table, as the open transaction sees it.
  func exists(_ keyspace: Keyspace) throws -> Bool {
    if existing.contains(keyspace) { return true }
    guard try hasTable(table(of: keyspace).name) else { return false }
    existing.insert(keyspace)
    return true
  }

  /// Whether there is a table, as the open transaction sees it.
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

  /// Makes the keyspace's table; call `forget` when the transaction is rolled back.
  func create(_ keyspace: Keyspace) throws {
    try execute(table(of: keyspace).creation)
    existing.insert(keyspace)
  }

  /// Forgets keyspaces whose tables were rolled back.
  func forget(_ keyspaces: Set<Keyspace>) {
    for keyspace in keyspaces {
      existing.remove(keyspace)
      statements[keyspace] = nil
    }
  }

  /// A range of a keyspace's keys, for a statement; nil when it is surely empty.
  func range(_ keyspace: Keyspace, from: [UInt8]?, to: [UInt8]?) -> KeyspaceTable.Range? {
    table(of: keyspace).range(from: from, to: to)
  }

  /// Lends a statement for an existing keyspace; a nested use of the same kind gets another one.
  func with<Result>(
    _ kind: Statement.Kind,
    _ keyspace: Keyspace,
    _ body: (Statement, KeyspaceTable) throws -> Result
  ) throws -> Result {
    let table = table(of: keyspace)
    let statement = try take(kind, table)
    defer {
      statement.reset()
      // The entry is gone when the body's transaction was rolled back and the keyspace forgotten.
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
