import DatabaseModel

/// A write whose server values are resolved, as locations that it replaces.
struct ResolvedWrite {
  var base: DatabasePath
  /// True for an update, which listeners get as one event.
  var isMerge: Bool
  var locations: [Location]

  /// A node, or a node's priority, that is replaced.
  struct Location {
    var path: DatabasePath
    /// True if the node's leaf is the new priority of the node at the path.
    var isPriority: Bool
    var node: DatabaseNode

    /// The path as listeners see it, where a priority has a key of its own.
    var wirePath: DatabasePath { isPriority ? path.child(".priority") : path }
  }

  /// Resolves a write at a time; throws for places beyond the limits and for overlapping ones.
  init(_ write: DatabaseWrite, in view: TreeView, nowMilliseconds: Int64) throws {
    func location(
      _ path: DatabasePath,
      isPriority: Bool,
      _ input: DatabaseInput
    ) throws -> Location {
      let node = try input.resolved(atMilliseconds: nowMilliseconds) { below, isBelowPriority in
        let place = path.appending(below)
        return isPriority || isBelowPriority
          ? try view.priority(at: place) : try view.leaf(at: place)
      }
      guard path.count + node.depth <= DatabasePath.depthMax else {
        throw DatabaseError(
          .invalid,
          "Invalid data; a path is deeper than \(DatabasePath.depthMax) keys."
        )
      }
      return Location(path: path, isPriority: isPriority, node: node)
    }
    base = write.path
    switch write.operation {
    case .set(let path, let input):
      isMerge = false
      locations = [try location(path, isPriority: false, input)]
    case .setPriority(let path, let input):
      isMerge = false
      locations = [try location(path, isPriority: true, input)]
    case .merge(let path, let members):
      isMerge = true
      locations = try members.map {
        try location(path.appending($0.path), isPriority: $0.isPriority, $0.value)
      }
      try checkOverlap()
    }
  }

  /// Sorted by their keys, a path directly precedes those below it.
  private func checkOverlap() throws {
    let sorted = locations.map(\.wirePath).sorted()
    for (upper, lower) in zip(sorted, sorted.dropFirst()) where lower.starts(with: upper) {
      throw DatabaseError(
        .invalid,
        "Invalid data; the path \(upper) of the update is an ancestor of \(lower)."
      )
    }
  }

  /// Applies the write to a tree and returns the changes of the stored tree.
  func apply(to view: inout TreeView) throws -> [TreeView.Effect] {
    var effects: [TreeView.Effect] = []
    for location in locations {
      let effect =
        location.isPriority
        ? try view.setPriority(location.node.leaf, at: location.path)
        : try view.replace(location.path, with: location.node)
      if let effect { effects.append(effect) }
    }
    return effects
  }
}
