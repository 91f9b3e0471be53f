/// An ordered, transactional store of bytes, in which the rooms above keep their data.
///
/// Keys are ordered bytewise within a keyspace. Commits are numbered 1, 2, 3 … without gaps; commit
/// *n* becomes visible only after *n − 1*, and all at once.
package protocol OrderedStorage: Sendable {
  /// Runs `body` on a consistent view of the store and ends the view when `body` returns.
  ///
  /// The view shows every commit acknowledged before the call. `body` runs synchronously, so it
  /// must be short: bound what it scans. Waits for a free reader when all are in use.
  func read<Result: Sendable>(
    _ body: (any StorageSnapshot) throws -> sending Result
  ) async throws -> sending Result

  /// Hands over a batch; commits get their sequences in the order of these calls.
  ///
  /// Returns at once. `completion` is called exactly once, on one of the engine's threads, after
  /// the commit is visible and as durable as asked, or with a `StorageError` when nothing of it was
  /// applied. It must not block. This synchronous form exists so that a caller can fix the order of
  /// commits under a lock of its own; other callers use `commit`.
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
  /// Later calls throw `StorageError.closed`.
  func close() async throws
}

extension OrderedStorage {
  /// Applies a batch, all or nothing, and returns its sequence once it is visible and durable.
  ///
  /// Throws `StorageError` with kind `.conflict` when an expectation does not hold.
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

/// A named, separately ordered set of keys.
///
/// Names are made of lower-case letters and underscores.
package struct Keyspace: Sendable, Hashable {
  package let name: String
  package let form: Form

  /// A keyspace; it exists as soon as something is written to it.
  ///
  /// Every use of a name must give the same form.
  package init(_ name: String, _ form: Form = .any) {
    precondition(
      !name.isEmpty && name.utf8.allSatisfy { (97...122).contains($0) || $0 == 95 },
      "a keyspace's name is made of a-z and underscores"
    )
    self.name = name
    self.form = form
  }

  /// What an engine may rely on to keep a keyspace close together.
  package enum Form: Sendable, Hashable {
    case any
    /// Rows are written by `putAtSequence` without a prefix alone.
    case log
    /// There are few rows, all small; they may stand beside those of other such keyspaces.
    case few
  }
}

/// When a commit counts as done.
package enum Durability: Sendable, Hashable {
  /// The commit survives power loss (in an engine that was opened as durable).
  case synced
  /// The commit survives the process, but perhaps not the machine until a later synced commit.
  case relaxed
}

/// A consistent view, valid only inside `OrderedStorage.read`.
package protocol StorageSnapshot {
  /// The commit that this view shows.
  var sequence: UInt64 { get }

  /// The value of a key with the sequence that wrote it, or nil.
  func get(_ keyspace: Keyspace, _ key: [UInt8]) throws -> StoredValue?

  /// Calls `body` for the keys of a range in order until it returns false.
  ///
  /// Bounds are half-open: `from` is included, `to` is not; nil is unbounded. Descending order
  /// starts below `to`.
  func scan(
    _ keyspace: Keyspace,
    from: [UInt8]?,
    to: [UInt8]?,
    descending: Bool,
    _ body: (_ key: [UInt8], _ value: StoredValue) throws -> Bool
  ) throws

  /// Calls `body` for the keys of a range with their versions, in order until it returns false.
  ///
  /// An engine that can reads no values.
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

/// A value with the sequence of the commit that wrote it.
package struct StoredValue: Sendable, Hashable {
  package var bytes: [UInt8]
  package var version: UInt64

  /// What a snapshot returns for a key.
  package init(bytes: [UInt8], version: UInt64) {
    self.bytes = bytes
    self.version = version
  }
}

/// A commit's requirement for a key: the version that the caller read, or nil for absence.
package struct VersionExpectation: Sendable, Hashable {
  package var keyspace: Keyspace
  package var key: [UInt8]
  package var version: UInt64?

  /// Requires that `key` still has `version`.
  package init(_ keyspace: Keyspace, _ key: [UInt8], version: UInt64?) {
    self.keyspace = keyspace
    self.key = key
    self.version = version
  }
}

/// Changes that are applied together, in order.
package struct StorageBatch: Sendable {
  package private(set) var operations: [Operation] = []

  /// An empty batch; committing one still takes a sequence.
  package init() {}

  /// One change.
  package enum Operation: Sendable, Hashable {
    case put(Keyspace, key: [UInt8], value: [UInt8])
    /// Sets the key made of `prefix` and the commit's sequence, 8 bytes big-endian.
    case putAtSequence(Keyspace, prefix: [UInt8], value: [UInt8])
    case delete(Keyspace, key: [UInt8])
    /// Removes a half-open range of keys; a nil bound is unbounded.
    case deleteRange(Keyspace, from: [UInt8]?, to: [UInt8]?)

    /// The key that `putAtSequence` writes when the commit gets `sequence`.
    package static func key(prefix: [UInt8], sequence: UInt64) -> [UInt8] {
      withUnsafeBytes(of: sequence.bigEndian) { prefix + $0 }
    }
  }

  /// Adds all changes of another batch.
  package mutating func append(_ other: StorageBatch) {
    operations.append(contentsOf: other.operations)
  }

  /// Sets a key.
  package mutating func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) {
    operations.append(.put(keyspace, key: key, value: value))
  }

  /// Sets the key made of `prefix` and the sequence that this commit will get.
  package mutating func putAtSequence(
    _ keyspace: Keyspace,
    prefix: [UInt8] = [],
    _ value: [UInt8]
  ) {
    operations.append(.putAtSequence(keyspace, prefix: prefix, value: value))
  }

  /// Removes a key, if it is there.
  package mutating func delete(_ keyspace: Keyspace, _ key: [UInt8]) {
    operations.append(.delete(keyspace, key: key))
  }

  /// Removes the keys of a half-open range.
  package mutating func deleteRange(_ keyspace: Keyspace, from: [UInt8]?, to: [UInt8]?) {
    operations.append(.deleteRange(keyspace, from: from, to: to))
  }
}

/// The smallest key above every key that starts with `prefix`, or nil when there is none.
package func keyAfter(prefix: [UInt8]) -> [UInt8]? {
  var end = prefix
  while let last = end.popLast() {
    if last < 0xFF { return end + [last + 1] }
  }
  return nil
}
