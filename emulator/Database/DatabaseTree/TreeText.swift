import DatabaseModel
import JSONText
import StorageEngine

extension DatabaseInstance {
  /// Passes the JSON of the whole tree to `body` in pieces, in the form of exports.
  ///
  /// All of them are of one moment, and no tree is too large. An empty tree has no pieces.
  package func forEachPiece(_ body: ([UInt8]) throws -> Void) async throws {
    try await storage.read { snapshot in
      let prefix = NodeRows.prefix(instance: name)
      var text = TreeText()
      try snapshot.scan(NodeRows.keyspace, prefix: prefix) { key, value in
        var keys: [DatabaseKey] = []
        var index = prefix.count
        while index < key.count { keys.append(try NodeRows.key(in: key, at: &index)) }
        text.add(keys, try NodeRows.decode(value.bytes))
        try body(text.take())
        return true
      }
      text.finish()
      let rest = text.take()
      if !rest.isEmpty { try body(rest) }
    }
  }
}

/// The JSON of a tree whose rows are added in the order of their keys.
struct TreeText {
  private var bytes: [UInt8] = []
  /// The keys of the node that was added last.
  private var last: [DatabaseKey] = []
  /// The objects that are not closed yet, from the root on; true if one has members.
  private var open: [Bool] = []

  /// Returns what was written since the last call.
  mutating func take() -> [UInt8] {
    defer { bytes.removeAll(keepingCapacity: true) }
    return bytes
  }

  mutating func add(_ keys: [DatabaseKey], _ row: NodeRows.Row) {
    let shared = zip(keys, last).prefix { $0 == $1 }.count
    close(to: shared + 1)
    while open.count < keys.count {
      if let key = keys.prefix(open.count).last { begin(key) }
      bytes.append(UInt8(ascii: "{"))
      open.append(false)
    }
    if let key = keys.last { begin(key) }
    if let leaf = row.leaf {
      DatabaseNode(leaf, priority: row.priority).appendJSON(.export, to: &bytes)
    } else {
      bytes += #"{".priority":"#.utf8
      row.priority?.appendJSON(to: &bytes)
      open.append(true)
    }
    last = keys
  }

  mutating func finish() { close(to: 0) }

  /// Begins a member of the innermost open object.
  private mutating func begin(_ key: DatabaseKey) {
    if open[open.count - 1] { bytes.append(UInt8(ascii: ",")) }
    open[open.count - 1] = true
    bytes.appendJSONQuoted(key.text)
    bytes.append(UInt8(ascii: ":"))
  }

  private mutating func close(to count: Int) {
    while open.count > count {
      bytes.append(UInt8(ascii: "}"))
      open.removeLast()
    }
  }
}
