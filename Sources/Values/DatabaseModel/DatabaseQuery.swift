/// A selection of a node's children: an order, bounds and a limit.
package struct DatabaseQuery: Sendable, Hashable {
  package var order: Order = .priority
  package var start: Bound?
  package var end: Bound?
  package var limit: Limit?

  /// The order of the children; children with equal values are ordered by key.
  package enum Order: Sendable, Hashable {
    case key
    case value
    case priority
    /// The value at a path below each child.
    case child(DatabasePath)
  }

  /// A bound of the selected children.
  package struct Bound: Sendable, Hashable {
    package var value: IndexValue
    /// The key of the bound among equal values; nil for the bound of all of them.
    package var key: BoundKey?
    package var isInclusive: Bool

    package init(_ value: IndexValue, key: BoundKey? = nil, isInclusive: Bool = true) {
      self.value = value
      self.key = key
      self.isInclusive = isInclusive
    }
  }

  /// The key of a bound, which may be below or above all keys.
  package enum BoundKey: Sendable, Hashable, Comparable {
    case min
    case key(DatabaseKey)
    case max
  }

  package struct Limit: Sendable, Hashable {
    package var count: Int
    /// True if the last children in the order are selected.
    package var isFromEnd: Bool

    package init(_ count: Int, isFromEnd: Bool) {
      self.count = count
      self.isFromEnd = isFromEnd
    }
  }

  /// The maximum number of a limit.
  package static let limitMax = Int(Int32.max)

  package init(
    order: Order = .priority,
    start: Bound? = nil,
    end: Bound? = nil,
    limit: Limit? = nil
  ) {
    self.order = order
    self.start = start
    self.end = end
    self.limit = limit
  }

  /// True if all children are selected, whatever their order.
  package var selectsAll: Bool {
    start == nil && end == nil && limit == nil
  }
}

/// The value by which a child is ordered: null, then leaves, then objects, which are equal.
package enum IndexValue: Sendable, Hashable, Comparable {
  case null
  case leaf(DatabaseLeaf)
  case object

  package init(_ node: DatabaseNode) {
    switch node.content {
    case .empty: self = .null
    case .leaf(let leaf): self = .leaf(leaf)
    case .children: self = .object
    }
  }
}

/// The place of a child in the order of a query.
package struct IndexEntry: Sendable, Hashable, Comparable {
  package var value: IndexValue
  package var key: DatabaseKey

  package init(_ value: IndexValue, key: DatabaseKey) {
    self.value = value
    self.key = key
  }

  package static func < (left: IndexEntry, right: IndexEntry) -> Bool {
    left.value != right.value ? left.value < right.value : left.key < right.key
  }
}

extension DatabaseQuery {
  /// Returns the place of a child in this order.
  package func entry(_ key: DatabaseKey, _ node: DatabaseNode) -> IndexEntry {
    switch order {
    case .key: IndexEntry(.null, key: key)
    case .value: IndexEntry(IndexValue(node), key: key)
    case .priority: IndexEntry(node.priority.map(IndexValue.leaf) ?? .null, key: key)
    case .child(let path): IndexEntry(IndexValue(node.node(at: path)), key: key)
    }
  }

  /// Returns true if a child lies within the bounds.
  package func contains(_ entry: IndexEntry) -> Bool {
    isAboveStart(entry) && isBelowEnd(entry)
  }

  private func isAboveStart(_ entry: IndexEntry) -> Bool {
    guard let start else { return true }
    let place = (value(entry), BoundKey.key(entry.key))
    let bound = (start.value, start.key ?? (start.isInclusive ? .min : .max))
    return start.isInclusive ? place >= bound : place > bound
  }

  private func isBelowEnd(_ entry: IndexEntry) -> Bool {
    guard let end else { return true }
    let place = (value(entry), BoundKey.key(entry.key))
    let bound = (end.value, end.key ?? (end.isInclusive ? .max : .min))
    return end.isInclusive ? place <= bound : place < bound
  }

  /// With the order by key, bounds have their key in `Bound.key` and null as their value.
  private func value(_ entry: IndexEntry) -> IndexValue {
    order == .key ? .null : entry.value
  }

  /// Returns the entries within the bounds and the limit, in order.
  package func select(_ entries: some Sequence<IndexEntry>) -> [IndexEntry] {
    let sorted = entries.filter(contains).sorted()
    guard let limit else { return sorted }
    return limit.isFromEnd ? sorted.suffix(limit.count) : Array(sorted.prefix(limit.count))
  }

  /// Returns a node with its selected children only; a leaf has none.
  package func apply(to node: DatabaseNode) -> DatabaseNode {
    guard !selectsAll else { return node }
    let children = node.children
    let selected = Set(select(children.lazy.map { self.entry($0.key, $0.node) }).map(\.key))
    return DatabaseNode(
      DatabaseChildren(
        children.lazy.filter { selected.contains($0.key) }.map { ($0.key.text, $0.node) }
      ),
      priority: node.priority
    )
  }
}
