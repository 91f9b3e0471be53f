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
