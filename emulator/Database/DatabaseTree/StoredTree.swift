import DatabaseModel
import StorageEngine

/// The stored tree of an instance, as one snapshot shows it.
struct StoredTree: DatabaseView {
  let instance: String
  let snapshot: any StorageSnapshot
  /// What the reader may look at; nil for as much as a node may have.
  var budget: ReadBudget?

  /// The maximum size of a node that is read at once, which is production's.
  static let nodeBytesMax = 256 << 20

  func row(at path: DatabasePath) throws -> NodeRows.Row? {
    try snapshot.get(NodeRows.keyspace, NodeRows.key(instance: instance, path)).map {
      try NodeRows.decode($0.bytes)
    }
  }

  func leaf(at path: DatabasePath) throws -> DatabaseLeaf? { try row(at: path)?.leaf }
  func priority(at path: DatabasePath) throws -> DatabaseLeaf? { try row(at: path)?.priority }

  func exists(at path: DatabasePath) throws -> Bool {
    var exists = false
    try snapshot.scanKeys(
      NodeRows.keyspace,
      from: NodeRows.key(instance: instance, path),
      to: keyAfter(prefix: NodeRows.key(instance: instance, path)),
      descending: false
    ) { _, _ in
      exists = true
      return false
    }
    return exists
  }

  func forEachChild(
    at path: DatabasePath,
    _ body: (_ key: DatabaseKey) throws -> Bool
  ) throws {
    try forEachChild(at: path, after: nil, descending: false, body)
  }

  /// Calls `body` for the keys of the children beyond a key, in order, until it returns false.
  ///
  /// Each child costs one seek, whatever is below it.
  func forEachChild(
    at path: DatabasePath,
    after start: DatabaseKey?,
    descending: Bool,
    _ body: (_ key: DatabaseKey) throws -> Bool
  ) throws {
    let prefix = NodeRows.key(instance: instance, path)
    // The node's own row has the prefix as its key, and is no child.
    var from: [UInt8]? = prefix + [0]
    var to = keyAfter(prefix: prefix)
    if let start {
      var bound = prefix
      NodeRows.append(start, to: &bound)
      if descending { to = bound } else { from = keyAfter(prefix: bound) }
    }
    while true {
      var found: DatabaseKey?
      try snapshot.scanKeys(NodeRows.keyspace, from: from, to: to, descending: descending) {
        key,
        _ in
        var index = prefix.count
        found = try NodeRows.key(in: key, at: &index)
        try budget?.spend(key.count)
        return false
      }
      guard let found, try body(found) else { return }
      var bound = prefix
      NodeRows.append(found, to: &bound)
      if descending { to = bound } else { from = keyAfter(prefix: bound) }
    }
  }

  /// Returns a node with everything below it; throws if it is larger than `nodeBytesMax`.
  func node(at path: DatabasePath) throws -> DatabaseNode {
    let prefix = NodeRows.key(instance: instance, path)
    var builder = NodeBuilder()
    var bytes = 0
    try snapshot.scan(NodeRows.keyspace, prefix: prefix) { key, value in
      bytes += key.count + value.bytes.count
      try budget?.spend(key.count + value.bytes.count)
      guard bytes <= Self.nodeBytesMax else { throw DatabaseError.tooBig }
      var keys: [DatabaseKey] = []
      var index = prefix.count
      while index < key.count { keys.append(try NodeRows.key(in: key, at: &index)) }
      builder.add(keys, try NodeRows.decode(value.bytes))
      return true
    }
    return builder.finish()
  }
}

/// Builds a node from rows in the order of their keys.
private struct NodeBuilder {
  private struct Level {
    var key: DatabaseKey?
    var children = DatabaseChildren()
    var leaf: DatabaseLeaf?
    var priority: DatabaseLeaf?

    var node: DatabaseNode {
      leaf.map { DatabaseNode($0, priority: priority) }
        ?? DatabaseNode(children, priority: priority)
    }
  }

  private var levels = [Level()]

  mutating func add(_ keys: [DatabaseKey], _ row: NodeRows.Row) {
    var shared = 0
    while shared < min(keys.count, levels.count - 1), levels[shared + 1].key == keys[shared] {
      shared += 1
    }
    close(to: shared)
    for key in keys[shared...] { levels.append(Level(key: key)) }
    levels[levels.count - 1].leaf = row.leaf
    levels[levels.count - 1].priority = row.priority
  }

  mutating func finish() -> DatabaseNode {
    close(to: 0)
    return levels[0].node
  }

  private mutating func close(to depth: Int) {
    while levels.count > depth + 1 {
      let level = levels.removeLast()
      if let key = level.key { levels[levels.count - 1].children.append(level.node, for: key) }
    }
  }
}
