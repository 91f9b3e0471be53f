import DatabaseModel

/// The stored tree with writes on top of it that are not stored yet.
struct TreeView: DatabaseView {
  private(set) var stored: StoredTree
  private var changed = Changed.partly(Changes())

  /// The changes at a node and below it.
  fileprivate indirect enum Changed {
    /// The node is this one, whatever is stored.
    case replaced(DatabaseNode)
    case partly(Changes)
  }

  /// The changes to a node that is not replaced as a whole.
  fileprivate struct Changes {
    var children: [DatabaseKey: Changed] = [:]
    /// The new priority, which may be none; nil if it stays.
    var priority: DatabaseLeaf??
  }

  init(_ stored: StoredTree) {
    self.stored = stored
  }

  /// Returns the same tree for a reader with a budget.
  func limited(to budget: ReadBudget) -> TreeView {
    var view = self
    view.stored.budget = budget
    return view
  }

  /// A change of the tree as it is stored.
  enum Effect {
    case replace(DatabasePath, DatabaseNode)
    /// Sets the priority of an object, which exists.
    case setPriority(DatabasePath, DatabaseLeaf?)
  }

  // MARK: Changes

  /// Replaces a node, and returns the change that does the same to the stored tree.
  ///
  /// An ancestor that is a leaf becomes an object, and an ancestor that loses its last child goes.
  /// Returns nil if the tree stays as it is.
  mutating func replace(_ path: DatabasePath, with node: DatabaseNode) throws -> Effect? {
    for depth in 0..<path.count {
      let ancestor = path.prefix(depth)
      guard let leaf = try leaf(at: ancestor) else { continue }
      if node.isEmpty { return nil }
      var object = DatabaseNode(leaf, priority: try priority(at: ancestor))
      object.set(node, at: path.dropFirst(depth))
      put(object, at: ancestor)
      return .replace(ancestor, object)
    }
    put(node, at: path)
    guard node.isEmpty else { return .replace(path, node) }
    var gone = path
    while !gone.isRoot, try !hasChildren(at: gone.parent) { gone = gone.parent }
    put(.empty, at: gone)
    return .replace(gone, .empty)
  }

  /// Sets the priority of a node; nil if there is no node.
  mutating func setPriority(_ priority: DatabaseLeaf?, at path: DatabasePath) throws -> Effect? {
    if let leaf = try leaf(at: path) {
      return try replace(path, with: DatabaseNode(leaf, priority: priority))
    }
    guard try exists(at: path) else { return nil }
    Self.update(&changed, path.keys[...]) { changed in
      switch changed {
      case .replaced(let node): changed = .replaced(node.with(priority: priority))
      case .partly(var changes):
        changes.priority = .some(priority)
        changed = .partly(changes)
      }
    }
    return .setPriority(path, priority)
  }

  private mutating func put(_ node: DatabaseNode, at path: DatabasePath) {
    Self.update(&changed, path.keys[...]) { $0 = .replaced(node) }
  }

  private static func update(
    _ changed: inout Changed,
    _ keys: ArraySlice<String>,
    _ body: (inout Changed) -> Void
  ) {
    guard let text = keys.first else { return body(&changed) }
    let key = DatabaseKey(text)
    switch changed {
    case .replaced(var node):
      var child = Changed.replaced(node[text])
      update(&child, keys.dropFirst(), body)
      if case .replaced(let new) = child { node.set(new, at: DatabasePath([text])) }
      changed = .replaced(node)
    case .partly(var changes):
      var child = changes.children[key] ?? .partly(Changes())
      update(&child, keys.dropFirst(), body)
      changes.children[key] = child
      changed = .partly(changes)
    }
  }

  // MARK: Reading

  private enum Place {
    case node(DatabaseNode)
    case changed(Changes)
    case stored
  }

  private func place(_ path: DatabasePath) -> Place {
    var changed = changed
    for (depth, key) in path.keys.enumerated() {
      switch changed {
      case .replaced(let node): return .node(node.node(at: path.dropFirst(depth)))
      case .partly(let changes):
        guard let child = changes.children[DatabaseKey(key)] else { return .stored }
        changed = child
      }
    }
    switch changed {
    case .replaced(let node): return .node(node)
    case .partly(let changes): return .changed(changes)
    }
  }

  func leaf(at path: DatabasePath) throws -> DatabaseLeaf? {
    switch place(path) {
    case .node(let node): node.leaf
    // A change below a leaf would have replaced the leaf.
    case .changed, .stored: try stored.leaf(at: path)
    }
  }

  func priority(at path: DatabasePath) throws -> DatabaseLeaf? {
    switch place(path) {
    case .node(let node): return node.priority
    case .changed(let changes):
      if let priority = changes.priority { return priority }
      return try stored.priority(at: path)
    case .stored: return try stored.priority(at: path)
    }
  }

  func exists(at path: DatabasePath) throws -> Bool {
    switch place(path) {
    case .node(let node): return !node.isEmpty
    case .stored: return try stored.exists(at: path)
    case .changed: return try stored.leaf(at: path) != nil || hasChildren(at: path)
    }
  }

  private func hasChildren(at path: DatabasePath) throws -> Bool {
    var hasChildren = false
    try forEachChild(at: path) { _ in
      hasChildren = true
      return false
    }
    return hasChildren
  }

  func forEachChild(
    at path: DatabasePath,
    _ body: (_ key: DatabaseKey) throws -> Bool
  ) throws {
    try forEachChild(at: path, after: nil, descending: false, body)
  }

  /// Calls `body` for the keys of the children beyond a key, in order, until it returns false.
  func forEachChild(
    at path: DatabasePath,
    after start: DatabaseKey?,
    descending: Bool,
    _ body: (_ key: DatabaseKey) throws -> Bool
  ) throws {
    func isBeyond(_ key: DatabaseKey, _ bound: DatabaseKey) -> Bool {
      descending ? key < bound : bound < key
    }
    switch place(path) {
    case .stored:
      try stored.forEachChild(at: path, after: start, descending: descending, body)
    case .node(let node):
      let children = node.children
      for index in 0..<children.count {
        let key = children[descending ? children.count - 1 - index : index].key
        if let start, !isBeyond(key, start) { continue }
        guard try body(key) else { return }
      }
    case .changed(let changes):
      var changed: [DatabaseKey] = []
      for (key, change) in changes.children {
        if let start, !isBeyond(key, start) { continue }
        switch change {
        case .replaced(let node) where node.isEmpty: break
        case .partly where try !exists(at: path.child(key.text)): break
        case .replaced, .partly: changed.append(key)
        }
      }
      // The next one is last.
      changed.sort { isBeyond($0, $1) }
      var goesOn = true
      try stored.forEachChild(at: path, after: start, descending: descending) { key in
        while let next = changed.last, isBeyond(key, next) {
          changed.removeLast()
          goesOn = try body(next)
          guard goesOn else { return false }
        }
        // Changed children come from the list above, or are gone.
        guard changes.children[key] == nil else { return true }
        goesOn = try body(key)
        return goesOn
      }
      while goesOn, let next = changed.popLast() { goesOn = try body(next) }
    }
  }

  /// Returns a node with everything below it; throws if it is too large.
  func node(at path: DatabasePath) throws -> DatabaseNode {
    switch place(path) {
    case .node(let node): return node
    case .stored: return try stored.node(at: path)
    case .changed(let changes):
      var node = try stored.node(at: path)
      changes.apply(to: &node, at: .root)
      return node
    }
  }
}

extension TreeView.Changes {
  fileprivate func apply(to node: inout DatabaseNode, at path: DatabasePath) {
    for (key, changed) in children {
      let child = path.child(key.text)
      switch changed {
      case .replaced(let new): node.set(new, at: child)
      case .partly(let changes): changes.apply(to: &node, at: child)
      }
    }
    if let priority { node.setPriority(priority, at: path) }
  }
}
