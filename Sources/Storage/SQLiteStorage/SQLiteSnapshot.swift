import StorageEngine

/// A read transaction with the sequence of the commit that it shows.
///
/// It is usable until `end`.
final class SQLiteSnapshot: StorageSnapshot {
  let sequence: UInt64
  private let connection: SQLiteConnection
  private var isEnded = false

  /// Begins a transaction on a connection that has none.
  init(_ connection: SQLiteConnection) throws {
    self.connection = connection
    try connection.run("begin")
    // The first read of the transaction determines its view.
    guard let number = try connection.number(DatabaseFile.selectSequence), number >= 0 else {
      throw StorageError(.corrupt, DatabaseFile.lostSequence(connection.path))
    }
    sequence = UInt64(number)
  }

  func get(_ keyspace: Keyspace, _ key: [UInt8]) throws -> StoredValue? {
    guard try isReadable(keyspace) else { return nil }
    return try connection.with(.get, keyspace) { statement, table in
      var value: StoredValue?
      _ = try table.bind(key, to: statement) {
        guard try statement.step() else { return }
        value = StoredValue(bytes: statement.bytes(0), version: statement.sequence(1))
      }
      return value
    }
  }

  func scan(
    _ keyspace: Keyspace,
    from: [UInt8]?,
    to: [UInt8]?,
    descending: Bool,
    _ body: (_ key: [UInt8], _ value: StoredValue) throws -> Bool
  ) throws {
    try scan(.whole, keyspace, from: from, to: to, descending: descending) { statement, key in
      try body(key, StoredValue(bytes: statement.bytes(2), version: statement.sequence(1)))
    }
  }

  func scanKeys(
    _ keyspace: Keyspace,
    from: [UInt8]?,
    to: [UInt8]?,
    descending: Bool,
    _ body: (_ key: [UInt8], _ version: UInt64) throws -> Bool
  ) throws {
    try scan(.keys, keyspace, from: from, to: to, descending: descending) { statement, key in
      try body(key, statement.sequence(1))
    }
  }

  private func scan(
    _ columns: Statement.Columns,
    _ keyspace: Keyspace,
    from: [UInt8]?,
    to: [UInt8]?,
    descending: Bool,
    _ body: (_ statement: Statement, _ key: [UInt8]) throws -> Bool
  ) throws {
    guard try isReadable(keyspace),
      let range = connection.range(keyspace, from: from, to: to)
    else { return }
    let bounds = Statement.Bounds(from: range.from != nil, to: range.to != nil)
    let kind = Statement.Kind.scan(columns, bounds, descending: descending)
    try connection.with(kind, keyspace) { statement, table in
      try range.bind(to: statement)
      while try statement.step() {
        guard try body(statement, table.key(of: statement, 0)) else { return }
      }
    }
  }

  /// Ends the view.
  ///
  /// Later uses throw.
  func end() {
    isEnded = true
    connection.rollBack()
  }

  private func isReadable(_ keyspace: Keyspace) throws -> Bool {
    guard !isEnded else {
      throw StorageError(.closed, "a snapshot was used after the read that it belongs to")
    }
    return try connection.exists(keyspace)
  }
}
