/// A consistent view of the store, valid only inside `OrderedStorage.read`.
package protocol StorageSnapshot {
  /// The sequence of the last commit that this view shows.
  var sequence: UInt64 { get }

  /// Returns the value of a key with the sequence that wrote it; nil if the key does not exist.
  func get(_ keyspace: Keyspace, _ key: [UInt8]) throws -> StoredValue?

  /// Calls `body` for the keys of a range, in order, until it returns false.
  ///
  /// The range includes `from` and excludes `to`; nil means no limit. Descending order starts below
  /// `to`.
  func scan(
    _ keyspace: Keyspace,
    from: [UInt8]?,
    to: [UInt8]?,
    descending: Bool,
    _ body: (_ key: [UInt8], _ value: StoredValue) throws -> Bool
  ) throws

  /// Calls `body` for the keys of a range with their versions, in order, until it returns false.
  ///
  /// An engine may be able to do this without reading values. The default reads them.
  func scanKeys(
    _ keyspace: Keyspace,
    from: [UInt8]?,
    to: [UInt8]?,
    descending: Bool,
    _ body: (_ key: [UInt8], _ version: UInt64) throws -> Bool
  ) throws
}

extension StorageSnapshot {
  package func scanKeys(
    _ keyspace: Keyspace,
    from: [UInt8]?,
    to: [UInt8]?,
    descending: Bool,
    _ body: (_ key: [UInt8], _ version: UInt64) throws -> Bool
  ) throws {
    try scan(keyspace, from: from, to: to, descending: descending) { key, value in
      try body(key, value.version)
    }
  }

  /// Calls `body` for every key that starts with `prefix`, in order, until it returns false.
  package func scan(
    _ keyspace: Keyspace,
    prefix: [UInt8],
    descending: Bool = false,
    _ body: (_ key: [UInt8], _ value: StoredValue) throws -> Bool
  ) throws {
    try scan(
      keyspace,
      from: prefix,
      to: keyAfter(prefix: prefix),
      descending: descending,
      body
    )
  }
}

/// A stored value with the sequence of the commit that wrote it.
package struct StoredValue: Sendable, Hashable {
  package var bytes: [UInt8]
  package var version: UInt64

  package init(bytes: [UInt8], version: UInt64) {
    self.bytes = bytes
    self.version = version
  }
}

/// Returns the smallest key above all keys that start with `prefix`; nil if there is none.
package func keyAfter(prefix: [UInt8]) -> [UInt8]? {
  var end = prefix
  while let last = end.popLast() {
    if last < 0xFF { return end + [last + 1] }
  }
  return nil
}
