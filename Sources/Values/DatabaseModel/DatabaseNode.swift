/// A node of the Realtime Database with everything below it, as an immutable value.
///
/// A node without a value and without children does not exist, and has no priority.
package struct DatabaseNode: Sendable, Hashable {
  package private(set) var content: Content
  package private(set) var priority: DatabaseLeaf?

  package enum Content: Sendable, Hashable {
    case empty
    case leaf(DatabaseLeaf)
    /// At least one child; none of them is empty.
    case children(DatabaseChildren)
  }

  package static let empty = DatabaseNode(.empty, priority: nil)

  package init(_ leaf: DatabaseLeaf, priority: DatabaseLeaf? = nil) {
    self.init(.leaf(leaf), priority: priority)
  }

  /// Creates a node from its children; empty children are left out.
  package init(_ children: DatabaseChildren, priority: DatabaseLeaf? = nil) {
    self.init(children.isEmpty ? .empty : .children(children), priority: priority)
  }

  private init(_ content: Content, priority: DatabaseLeaf?) {
    self.content = content
    self.priority = content == .empty ? nil : priority
  }

  package var isEmpty: Bool {
    if case .empty = content { true } else { false }
  }

  package var leaf: DatabaseLeaf? {
    if case .leaf(let leaf) = content { leaf } else { nil }
  }

  /// The children in the order of their keys; empty for a leaf.
  package var children: DatabaseChildren {
    if case .children(let children) = content { children } else { DatabaseChildren() }
  }

  /// The child with a key, which is empty if there is none.
  package subscript(key: String) -> DatabaseNode {
    children[DatabaseKey(key)] ?? .empty
  }

  package func node(at path: DatabasePath) -> DatabaseNode {
    var node = self
    for key in path.keys where !node.isEmpty { node = node[key] }
    return node
  }

  /// Replaces the node at a path.
  ///
  /// Ancestors keep their priorities. An ancestor that is a leaf becomes an object, and an ancestor
  /// that loses its last child goes with its priority.
  package mutating func set(_ node: DatabaseNode, at path: DatabasePath) {
    set(node, at: path.keys[...])
  }

  private mutating func set(_ node: DatabaseNode, at keys: ArraySlice<String>) {
    guard let key = keys.first else { return self = node }
    if node.isEmpty, case .leaf = content { return }
    var children = children
    // The old child must not share its storage, or each level would be copied.
    content = .empty
    let childKey = DatabaseKey(key)
    var child = children.remove(childKey) ?? .empty
    child.set(node, at: keys.dropFirst())
    if !child.isEmpty { children.insert(child, for: childKey) }
    self = DatabaseNode(children, priority: priority)
  }

  /// Sets the priority of the node at a path; a node that does not exist gets none.
  package mutating func setPriority(_ priority: DatabaseLeaf?, at path: DatabasePath = .root) {
    var target = node(at: path)
    guard !target.isEmpty else { return }
    target.priority = priority
    set(target, at: path)
  }

  /// Returns the node with another priority.
  package func with(priority: DatabaseLeaf?) -> DatabaseNode {
    DatabaseNode(content, priority: priority)
  }

  /// The number of keys on the longest way down; 0 for a leaf.
  package var depth: Int {
    children.reduce(0) { max($0, $1.node.depth + 1) }
  }
}

/// The children of a node, in the order of their keys.
package struct DatabaseChildren: Sendable, Hashable, RandomAccessCollection {
  package struct Child: Sendable, Hashable {
    package var key: DatabaseKey
    package var node: DatabaseNode
  }

  private var sorted: [Child] = []

  package init() {}

  /// Creates the children from nodes in any order; of two with the same key the last one counts.
  ///
  /// Empty nodes are left out.
  package init(_ children: some Sequence<(String, DatabaseNode)>) {
    var byKey: [DatabaseKey: Int] = [:]
    for (text, node) in children {
      let key = DatabaseKey(text)
      if let index = byKey[key] {
        sorted[index].node = node
      } else {
        byKey[key] = sorted.count
        sorted.append(Child(key: key, node: node))
      }
    }
    sorted.removeAll(where: \.node.isEmpty)
    if !zip(sorted, sorted.dropFirst()).allSatisfy({ $0.key < $1.key }) {
      sorted.sort { $0.key < $1.key }
    }
  }

  package var startIndex: Int { 0 }
  package var endIndex: Int { sorted.count }
  package subscript(index: Int) -> Child { sorted[index] }

  package subscript(key: DatabaseKey) -> DatabaseNode? {
    let index = lowerBound(key)
    return index < sorted.count && sorted[index].key == key ? sorted[index].node : nil
  }

  /// Adds a child, whose key must come after all others, in constant time.
  package mutating func append(_ node: DatabaseNode, for key: DatabaseKey) {
    precondition(sorted.last.map { $0.key < key } ?? true, "children are appended in order")
    sorted.append(Child(key: key, node: node))
  }

  fileprivate mutating func remove(_ key: DatabaseKey) -> DatabaseNode? {
    let index = lowerBound(key)
    guard index < sorted.count, sorted[index].key == key else { return nil }
    return sorted.remove(at: index).node
  }

  fileprivate mutating func insert(_ node: DatabaseNode, for key: DatabaseKey) {
    sorted.insert(Child(key: key, node: node), at: lowerBound(key))
  }

  private func lowerBound(_ key: DatabaseKey) -> Int {
    var (low, high) = (0, sorted.count)
    while low < high {
      let middle = (low + high) / 2
      if sorted[middle].key < key { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
