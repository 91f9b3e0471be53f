import DatabaseModel

/// The children that a listener with a query sees: their places in the order, without their data.
struct QueryWindow {
  let query: DatabaseQuery
  let path: DatabasePath
  /// The selected children in order.
  private(set) var entries: [IndexEntry]
  private var places: [DatabaseKey: IndexEntry]

  /// Selects the children of a node as a tree shows them.
  init(_ query: DatabaseQuery, at path: DatabasePath, in view: TreeView) throws {
    self.query = query
    self.path = path
    entries = try view.select(query, at: path)
    places = Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0) })
  }

  /// Returns the node with the selected children.
  func node(in view: TreeView) throws -> DatabaseNode {
    let children = try entries.map { entry in
      (entry.key.text, try view.node(at: path.child(entry.key.text)))
    }
    return DatabaseNode(DatabaseChildren(children), priority: try view.priority(at: path))
  }

  /// Selects again after some children have changed.
  ///
  /// Returns the children that the listener must get, sorted: those of `keys` that are or were
  /// selected, and those that came or went in their place.
  mutating func update(_ keys: [DatabaseKey], in view: TreeView) throws -> [DatabaseKey] {
    let before = places
    for key in keys where try !move(key, in: view) {
      self = try QueryWindow(query, at: path, in: view)
      break
    }
    var changed = Set(keys.filter { before[$0] != nil || places[$0] != nil })
    // Without a limit nothing else can come or go.
    if query.limit != nil {
      for key in before.keys where places[key] == nil { changed.insert(key) }
      for key in places.keys where before[key] == nil { changed.insert(key) }
    }
    return changed.sorted()
  }

  /// Moves one child to its new place; false if the other children must be read for that.
  private mutating func move(_ key: DatabaseKey, in view: TreeView) throws -> Bool {
    let new = try view.entry(key, at: path, query).flatMap { query.contains($0) ? $0 : nil }
    let old = places[key]
    guard let limit = query.limit else {
      replace(old, by: new)
      return true
    }
    let wasFull = entries.count >= limit.count
    if old != nil, wasFull {
      // Another child may take the place, unless this one stays before the farthest.
      guard let new, let farthest = limit.isFromEnd ? entries.first : entries.last,
        farthest.key != key, limit.isFromEnd ? farthest < new : new < farthest
      else { return false }
      replace(old, by: new)
      return true
    }
    replace(old, by: new)
    if entries.count > limit.count {
      let dropped = limit.isFromEnd ? entries.removeFirst() : entries.removeLast()
      places[dropped.key] = nil
    }
    return true
  }

  private mutating func replace(_ old: IndexEntry?, by new: IndexEntry?) {
    if let old {
      entries.remove(at: lowerBound(old))
      places[old.key] = nil
    }
    if let new {
      entries.insert(new, at: lowerBound(new))
      places[new.key] = new
    }
  }

  private func lowerBound(_ entry: IndexEntry) -> Int {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle] < entry { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

extension TreeView {
  /// Returns the place of a child in the order of a query; nil if there is no child.
  func entry(_ key: DatabaseKey, at path: DatabasePath, _ query: DatabaseQuery) throws
    -> IndexEntry?
  {
    let child = path.child(key.text)
    guard try exists(at: child) else { return nil }
    switch query.order {
    case .key: return IndexEntry(.null, key: key)
    case .priority:
      return IndexEntry(try priority(at: child).map(IndexValue.leaf) ?? .null, key: key)
    case .value: return IndexEntry(try indexValue(at: child), key: key)
    case .child(let below): return IndexEntry(try indexValue(at: child.appending(below)), key: key)
    }
  }

  private func indexValue(at path: DatabasePath) throws -> IndexValue {
    if let leaf = try leaf(at: path) { return .leaf(leaf) }
    return try exists(at: path) ? .object : .null
  }

  /// Returns the children that a query selects, in its order.
  ///
  /// The order by key reads only these. Any other order reads the value of each child.
  func select(_ query: DatabaseQuery, at path: DatabasePath) throws -> [IndexEntry] {
    if query.order == .key { return try selectByKey(query, at: path) }
    // Sorting now and then what may be selected bounds the memory.
    let keptMax = query.limit.map { max(2 * $0.count, 1024) }
    var entries: [IndexEntry] = []
    try forEachChild(at: path) { key in
      if let entry = try entry(key, at: path, query), query.contains(entry) {
        entries.append(entry)
        if let keptMax, entries.count > keptMax { entries = query.select(entries) }
      }
      return true
    }
    return query.select(entries)
  }

  private func selectByKey(_ query: DatabaseQuery, at path: DatabasePath) throws -> [IndexEntry] {
    let descending = query.limit?.isFromEnd ?? false
    var entries: [IndexEntry] = []
    var start: DatabaseKey?
    if case .key(let key)? = (descending ? query.end : query.start)?.key {
      // The bound itself is asked for apart, because the walk begins behind it.
      start = key
      let entry = IndexEntry(.null, key: key)
      if query.contains(entry), try exists(at: path.child(key.text)) { entries.append(entry) }
    }
    let countMax = query.limit?.count ?? .max
    if entries.count < countMax {
      try forEachChild(at: path, after: start, descending: descending) { key in
        let entry = IndexEntry(.null, key: key)
        guard query.contains(entry) else { return false }
        entries.append(entry)
        return entries.count < countMax
      }
    }
    return descending ? entries.reversed() : entries
  }
}
