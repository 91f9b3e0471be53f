import CSQLite
import StorageEngine

/// A prepared statement, owned by the cache of its connection and used only by that connection.
final class Statement {
  private let handle: OpaquePointer
  // Unowned, because the connection owns the caches and finalizes all statements before it is
  // closed.
  private unowned let connection: SQLiteConnection

  init(_ sql: String, _ connection: SQLiteConnection) throws {
    self.connection = connection
    handle = try connection.prepare(sql)
  }

  deinit {
    sqlite3_finalize(handle)
  }

  /// Binds bytes that the caller must keep at their address until the statement is reset.
  func bindInPlace(_ index: Int32, _ bytes: UnsafeRawBufferPointer) throws {
    // A null pointer would bind NULL, and an empty array may have no address.
    if bytes.isEmpty {
      try check(sqlite3_bind_zeroblob(handle, index, 0))
    } else {
      try check(sqlite3_bind_blob64(handle, index, bytes.baseAddress, UInt64(bytes.count), nil))
    }
  }

  func bind(_ index: Int32, _ bytes: [UInt8]) throws {
    if bytes.isEmpty {
      try check(sqlite3_bind_zeroblob(handle, index, 0))
    } else {
      let code = bytes.withUnsafeBytes {
        hearth_bind_blob_copy(handle, index, $0.baseAddress, Int32(clamping: $0.count))
      }
      try check(code)
    }
  }

  func bind(_ index: Int32, _ text: String) throws {
    try check(hearth_bind_text_copy(handle, index, text))
  }

  func bind(_ index: Int32, _ number: Int64) throws {
    try check(sqlite3_bind_int64(handle, index, number))
  }

  /// Runs the statement to its next row; returns false at the end.
  func step() throws -> Bool {
    let code = sqlite3_step(handle)
    if code == SQLITE_ROW { return true }
    guard code == SQLITE_DONE else { throw connection.error(code) }
    return false
  }

  /// Returns a sequence.
  ///
  /// Damaged files can contain any number, which must not crash the process.
  func sequence(_ column: Int32) -> UInt64 {
    UInt64(bitPattern: sqlite3_column_int64(handle, column))
  }

  func number(_ column: Int32) -> Int64 {
    sqlite3_column_int64(handle, column)
  }

  func bytes(_ column: Int32) -> [UInt8] {
    // The order matters: reading the address may convert the value, and the size is that of the
    // converted value.
    let address = sqlite3_column_blob(handle, column)
    let count = Int(sqlite3_column_bytes(handle, column))
    return Array(UnsafeRawBufferPointer(start: address, count: count))
  }

  /// Prepares the statement for its next use and releases bound bytes.
  func reset() {
    // The result repeats the error of the last step, which that step has already thrown.
    sqlite3_reset(handle)
    sqlite3_clear_bindings(handle)
  }

  private func check(_ code: Int32) throws {
    guard code == SQLITE_OK else { throw connection.error(code) }
  }
}

extension Statement {
  /// The kinds of statements that a keyspace needs.
  enum Kind: Hashable {
    case get, version, put, delete
    case deleteRange(Bounds)
    case scan(Columns, Bounds, descending: Bool)
  }

  /// The bounds that a range has.
  struct Bounds: Hashable {
    var from: Bool
    var to: Bool
  }

  /// The columns that a scan reads of each row.
  enum Columns: Hashable {
    case keys, whole
  }
}
