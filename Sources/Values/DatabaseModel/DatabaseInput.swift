package import JSONText

/// A value that a client wants to write, before its server values are resolved.
package struct DatabaseInput: Sendable, Hashable {
  /// The value without its server values.
  package var node: DatabaseNode
  package var serverValues: [Placed]

  /// A value that the server computes when it applies the write.
  package enum ServerValue: Sendable, Hashable {
    /// The server's time in milliseconds.
    case timestamp
    /// The number at the place, or 0, plus this one.
    case increment(Double)
  }

  /// A server value and its place within the written value.
  package struct Placed: Sendable, Hashable {
    package var path: DatabasePath
    package var isPriority: Bool
    package var value: ServerValue

    package init(path: DatabasePath, isPriority: Bool, value: ServerValue) {
      self.path = path
      self.isPriority = isPriority
      self.value = value
    }
  }

  package init(_ node: DatabaseNode, serverValues: [Placed] = []) {
    self.node = node
    self.serverValues = serverValues
  }

  /// Creates a value from JSON.
  ///
  /// Throws if the text is not JSON, or for keys, strings and depths beyond the limits.
  package init(parsing text: [UInt8]) throws(DatabaseDataError) {
    let tree: JSONTree
    do {
      tree = try JSONTree.parse(text)
    } catch {
      throw .notJSON
    }
    do {
      try self.init(tree)
    } catch {
      throw error.placed(in: text)
    }
  }

  /// Creates a value from parsed JSON; throws for keys, strings and depths beyond the limits.
  package init(_ tree: JSONTree) throws(DatabaseDataError) {
    self.init(.empty)
    node = try convert(tree, at: .root)
  }

  /// Creates a priority from parsed JSON, as it stands at a path that ends in `.priority`.
  package init(priority tree: JSONTree) throws(DatabaseDataError) {
    self.init(.empty)
    if let priority = try convertPriority(tree, at: .root) { node = DatabaseNode(priority) }
  }

  private mutating func convert(
    _ tree: JSONTree,
    at path: DatabasePath
  ) throws(DatabaseDataError) -> DatabaseNode {
    guard path.count <= DatabasePath.depthMax else { throw .tooDeep }
    switch tree {
    case .null: return .empty
    case .boolean, .number, .string: return DatabaseNode(try Self.leaf(tree))
    case .array(let elements):
      var children = DatabaseChildren()
      for (index, element) in elements.enumerated() {
        let key = String(index)
        let child = try convert(element, at: path.child(key))
        if !child.isEmpty { children.append(child, for: DatabaseKey(key)) }
      }
      return DatabaseNode(children)
    case .object(let members): return try convert(members, at: path)
    }
  }

  private mutating func convert(
    _ members: [(String, JSONTree)],
    at path: DatabasePath
  ) throws(DatabaseDataError) -> DatabaseNode {
    if members.count == 1, members[0].0 == ".sv" {
      serverValues.append(
        Placed(path: path, isPriority: false, value: try Self.serverValue(members[0].1))
      )
      return .empty
    }
    var priority: DatabaseLeaf?
    var value: DatabaseNode?
    var children: [(String, DatabaseNode)] = []
    for (key, member) in members {
      switch key {
      case ".priority": priority = try convertPriority(member, at: path)
      case ".value": value = try convert(member, at: path)
      default:
        guard DatabaseKey.isValid(key) else { throw .invalidKey(key) }
        children.append((key, try convert(member, at: path.child(key))))
      }
    }
    guard let value else { return DatabaseNode(DatabaseChildren(children), priority: priority) }
    guard children.isEmpty else { throw .invalidKey(".value") }
    return value.with(priority: priority)
  }

  private mutating func convertPriority(
    _ tree: JSONTree,
    at path: DatabasePath
  ) throws(DatabaseDataError) -> DatabaseLeaf? {
    switch tree {
    case .null: return nil
    case .number, .string: return try Self.leaf(tree)
    case .object(let members) where members.count == 1 && members[0].0 == ".sv":
      serverValues.append(
        Placed(path: path, isPriority: true, value: try Self.serverValue(members[0].1))
      )
      return nil
    default: throw .invalidPriority
    }
  }

  private static func leaf(_ tree: JSONTree) throws(DatabaseDataError) -> DatabaseLeaf {
    switch tree {
    case .boolean(let flag): return .boolean(flag)
    case .number(let number): return .number(number.double)
    case .string(let text):
      guard text.utf8.count <= DatabaseLeaf.stringBytesMax else { throw .stringTooLong }
      return .string(text)
    case .null, .array, .object: throw .invalidPriority
    }
  }

  private static func serverValue(_ tree: JSONTree) throws(DatabaseDataError) -> ServerValue {
    switch tree {
    case .string("timestamp"): return .timestamp
    case .object(let members) where members.count == 1 && members[0].0 == "increment":
      guard case .number(let number) = members[0].1 else { throw .invalidServerValue }
      return .increment(number.double)
    default: throw .invalidServerValue
    }
  }

  /// Returns the value to write.
  ///
  /// `current` returns the leaf, or the priority, that stands at a place before the write. An
  /// increment beyond the range of a double keeps the largest number.
  package func resolved(
    atMilliseconds now: Int64,
    current: (_ path: DatabasePath, _ isPriority: Bool) throws -> DatabaseLeaf?
  ) rethrows -> DatabaseNode {
    var node = node
    for placed in serverValues.sorted(by: { !$0.isPriority && $1.isPriority }) {
      let leaf: DatabaseLeaf
      switch placed.value {
      case .timestamp: leaf = .number(Double(now))
      case .increment(let amount):
        if case .number(let number)? = try current(placed.path, placed.isPriority) {
          let limit = Double.greatestFiniteMagnitude
          leaf = .number(min(max(number + amount, -limit), limit))
        } else {
          leaf = .number(amount)
        }
      }
      if placed.isPriority {
        node.setPriority(leaf, at: placed.path)
      } else {
        let priority = node.node(at: placed.path).priority
        node.set(DatabaseNode(leaf, priority: priority), at: placed.path)
      }
    }
    return node
  }
}
