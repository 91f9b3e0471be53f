import StorageEngine

/// The storage form of a keyspace in the file: its table and the keys in it.
struct KeyspaceTable {
  let keyspace: Keyspace
  /// The prefix of the keys in the table.
  let prefix: [UInt8]

  init(_ keyspace: Keyspace) {
    self.keyspace = keyspace
    prefix = keyspace.form == .few ? Array(keyspace.name.utf8) + [0] : []
  }

  var name: String { keyspace.form == .few ? "few" : "keyspace_\(keyspace.name)" }

  /// The column with the sequence of the commit that wrote a row.
  ///
  /// In a log it is the key itself, so new rows follow the last row and pages are filled
  /// completely.
  private var version: String { keyspace.form == .log ? "k" : "n" }

  /// The statement that creates the table, without a semicolon.
  var creation: String {
    keyspace.form == .log
      ? "create table \(name) (k integer primary key, v blob not null)"
      : "create table \(name) (k blob primary key, v blob not null, n integer not null) without rowid"
  }

  /// Returns the SQL of a statement.
  ///
  /// `?1` is the key or the lower bound, `?2` the value or the upper bound, and `?3` the version.
  func sql(_ kind: Statement.Kind) -> String {
    switch kind {
    case .get: return "select v, \(version) from \(name) where k = ?1"
    case .version: return "select \(version) from \(name) where k = ?1"
    case .put:
      return keyspace.form == .log
        ? "insert or replace into \(name) (k, v) values (?1, ?2)"
        : "insert or replace into \(name) (k, v, n) values (?1, ?2, ?3)"
    case .delete: return "delete from \(name) where k = ?1"
    case .deleteRange(let bounds): return "delete from \(name)\(Self.condition(bounds))"
    case .scan(let columns, let bounds, let descending):
      let value = columns == .whole ? ", v" : ""
      let order = descending ? " order by k desc" : " order by k"
      return "select k, \(version)\(value) from \(name)\(Self.condition(bounds))\(order)"
    }
  }

  private static func condition(_ bounds: Statement.Bounds) -> String {
    switch (bounds.from, bounds.to) {
    case (true, true): " where k >= ?1 and k < ?2"
    case (true, false): " where k >= ?1"
    case (false, true): " where k < ?2"
    case (false, false): ""
    }
  }

  /// Binds a key to the first parameter of a statement while `body` runs.
  ///
  /// Returns false without calling `body` if no row can have the key.
  func bind(_ key: [UInt8], to statement: Statement, _ body: () throws -> Void) throws -> Bool {
    switch keyspace.form {
    case .any:
      try key.withUnsafeBytes { key in
        try statement.bindInPlace(1, key)
        try body()
      }
    case .few:
      try statement.bind(1, prefix + key)
      try body()
    case .log:
      guard key.count == Self.sequenceBytes, let sequence = Self.lowest(from: key) else {
        return false
      }
      try statement.bind(1, sequence)
      try body()
    }
    return true
  }

  /// A range of keys in the form of the table.
  ///
  /// It includes `from` and excludes `to`.
  struct Range {
    var from: Bound?
    var to: Bound?

    enum Bound {
      case key([UInt8])
      case sequence(Int64)
    }

    /// Binds the bounds that are not nil.
    func bind(to statement: Statement) throws {
      for (index, bound) in [(1, from), (2, to)] as [(Int32, Bound?)] {
        switch bound {
        case .key(let key): try statement.bind(index, key)
        case .sequence(let sequence): try statement.bind(index, sequence)
        case nil: break
        }
      }
    }
  }

  /// Returns the range between two keys of the keyspace; nil if it is certainly empty.
  func range(from: [UInt8]?, to: [UInt8]?) -> Range? {
    switch keyspace.form {
    case .any: return Range(from: from.map(Range.Bound.key), to: to.map(Range.Bound.key))
    case .few:
      let end = to.map { prefix + $0 } ?? keyAfter(prefix: prefix)
      return Range(from: .key(prefix + (from ?? [])), to: end.map(Range.Bound.key))
    case .log:
      guard let start = Self.lowest(from: from ?? []) else { return nil }
      return Range(
        from: .sequence(start),
        to: to.flatMap(Self.lowest).map(Range.Bound.sequence)
      )
    }
  }

  /// Returns the keyspace's key of a statement's current row.
  func key(of statement: Statement, _ column: Int32) -> [UInt8] {
    switch keyspace.form {
    case .any: statement.bytes(column)
    case .few: Array(statement.bytes(column).dropFirst(prefix.count))
    case .log: withUnsafeBytes(of: statement.sequence(column).bigEndian) { Array($0) }
    }
  }

  private static let sequenceBytes = 8

  /// Returns the lowest sequence whose key is not below a bound; nil if there is none.
  private static func lowest(from bound: [UInt8]) -> Int64? {
    let padded = bound.prefix(sequenceBytes) + repeatElement(0, count: max(0, 8 - bound.count))
    let number = padded.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    guard let sequence = Int64(exactly: number) else { return nil }
    if bound.count <= sequenceBytes { return sequence }
    return sequence < .max ? sequence + 1 : nil
  }
}
