/// An ordered, transactional store of bytes, in which the modules above keep their data.
///
/// Keys are ordered bytewise within a keyspace. Commits are numbered 1, 2, 3 … without gaps. Commit
/// *n* becomes visible only after commit *n − 1*, and all at once.
package protocol OrderedStorage: Sendable {
  /// Runs `body` on a consistent view of the store and ends the view when `body` returns.
  ///
  /// The view shows every commit that was acknowledged before the call. `body` runs synchronously,
  /// so it must be short: limit the ranges that it scans. The call waits for a free reader if all
  /// are in use.
  func read<Result: Sendable>(
    _ body: (any StorageSnapshot) throws -> sending Result
  ) async throws -> sending Result

  /// Submits a batch. Commits get their sequences in the order of these calls.
  ///
  /// The call returns immediately. `completion` is called exactly once, on one of the engine's
  /// threads, and must not block. It gets the sequence after the commit is visible and has the
  /// requested durability. If nothing was applied, it gets a `StorageError` instead.
  ///
  /// This synchronous method allows a caller to fix the order of commits under its own lock. Other
  /// callers use `commit`.
  func submit(
    _ batch: StorageBatch,
    expecting: [VersionExpectation],
    durability: Durability,
    completion: @escaping @Sendable (Result<UInt64, any Error>) -> Void
  )

  /// The sequence of the last visible commit; 0 for an empty store.
  var sequence: UInt64 { get }

  /// Finishes the accepted commits, makes them durable and closes the store.
  ///
  /// Later calls throw a `StorageError` of kind `.closed`.
  func close() async throws
}

extension OrderedStorage {
  /// Applies a batch completely or not at all, and returns its sequence.
  ///
  /// Returns once the commit is visible and has the requested durability. Throws a `StorageError`
  /// of kind `.conflict` if an expectation is not met.
  @discardableResult
  package func commit(
    _ batch: StorageBatch,
    expecting: [VersionExpectation] = [],
    durability: Durability = .synced
  ) async throws -> UInt64 {
    try await withCheckedThrowingContinuation { continuation in
      submit(batch, expecting: expecting, durability: durability) { continuation.resume(with: $0) }
    }
  }
}

/// A named set of keys with an order of its own.
///
/// The name consists of lowercase letters and underscores.
package struct Keyspace: Sendable, Hashable {
  package let name: String
  package let form: Form

  /// Creates a keyspace, which exists in the store as soon as something is written to it.
  ///
  /// Every use of a name must have the same form.
  package init(_ name: String, _ form: Form = .any) {
    precondition(
      !name.isEmpty && name.utf8.allSatisfy { (97...122).contains($0) || $0 == 95 },
      "a keyspace's name is made of a-z and underscores"
    )
    self.name = name
    self.form = form
  }

  /// A property of a keyspace that allows an engine to store it compactly.
  package enum Form: Sendable, Hashable {
    case any
    /// All rows are written by `putAtSequence` without a prefix.
    case log
    /// There are few rows, all small. An engine may store several such keyspaces together.
    case few
  }
}

/// The guarantee that a completed commit has.
package enum Durability: Sendable, Hashable {
  /// The commit survives power loss, in an engine that was opened as durable.
  case synced
  /// The commit survives a crash of the process.
  ///
  /// It may be lost if the machine crashes before a later synced commit.
  case relaxed
}

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

/// The version that a key must have for a commit to succeed; nil if the key must not exist.
package struct VersionExpectation: Sendable, Hashable {
  package var keyspace: Keyspace
  package var key: [UInt8]
  package var version: UInt64?

  /// Creates the expectation that `key` still has `version`.
  package init(_ keyspace: Keyspace, _ key: [UInt8], version: UInt64?) {
    self.keyspace = keyspace
    self.key = key
    self.version = version
  }
}

/// A list of changes that are applied together, in order.
package struct StorageBatch: Sendable {
  package private(set) var operations: [Operation] = []

  /// Creates an empty batch.
  ///
  /// Its commit gets a sequence too.
  package init() {}

  package enum Operation: Sendable, Hashable {
    case put(Keyspace, key: [UInt8], value: [UInt8])
    /// Sets the key that consists of `prefix` and the commit's sequence as 8 big-endian bytes.
    case putAtSequence(Keyspace, prefix: [UInt8], value: [UInt8])
    case delete(Keyspace, key: [UInt8])
    /// Removes the keys from `from` up to, but not including, `to`; nil means no limit.
    case deleteRange(Keyspace, from: [UInt8]?, to: [UInt8]?)

    /// Returns the key that `putAtSequence` writes in the commit with a sequence.
    package static func key(prefix: [UInt8], sequence: UInt64) -> [UInt8] {
      withUnsafeBytes(of: sequence.bigEndian) { prefix + $0 }
    }
  }

  package mutating func append(_ other: StorageBatch) {
    operations.append(contentsOf: other.operations)
  }

  package mutating func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) {
    operations.append(.put(keyspace, key: key, value: value))
  }

  /// Sets the key that consists of `prefix` and the sequence that this commit will get.
  package mutating func putAtSequence(
    _ keyspace: Keyspace,
    prefix: [UInt8] = [],
    _ value: [UInt8]
  ) {
    operations.append(.putAtSequence(keyspace, prefix: prefix, value: value))
  }

  /// Removes a key if it exists.
  package mutating func delete(_ keyspace: Keyspace, _ key: [UInt8]) {
    operations.append(.delete(keyspace, key: key))
  }

  /// Removes the keys from `from` up to, but not including, `to`; nil means no limit.
  package mutating func deleteRange(_ keyspace: Keyspace, from: [UInt8]?, to: [UInt8]?) {
    operations.append(.deleteRange(keyspace, from: from, to: to))
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
