import DatabaseModel

/// A client's interest in a node.
final class Listener {
  let session: UInt64
  let path: DatabasePath
  /// The query as the client gave it; nil for the whole node.
  let query: DatabaseQuery?
  let tag: Int?
  /// The selected children; nil if the client gets all of them.
  var window: QueryWindow?

  init(
    session: UInt64,
    path: DatabasePath,
    query: DatabaseQuery?,
    tag: Int?,
    window: QueryWindow?
  ) {
    self.session = session
    self.path = path
    self.query = query
    self.tag = tag
    self.window = window
  }
}

/// The listeners of an instance, found by the paths that a write touches.
struct ListenerTable {
  private final class Place {
    var listeners: [Listener] = []
    var places: [DatabaseKey: Place] = [:]

    var isUnused: Bool { listeners.isEmpty && places.isEmpty }
  }

  private let root = Place()
  private(set) var count = 0

  mutating func add(_ listener: Listener) {
    var place = root
    for key in listener.path.keys.map({ DatabaseKey($0) }) {
      let next = place.places[key] ?? Place()
      place.places[key] = next
      place = next
    }
    place.listeners.append(listener)
    count += 1
  }

  mutating func remove(_ listener: Listener) {
    if Self.remove(listener, listener.path.keys[...], from: root) { count -= 1 }
  }

  private static func remove(
    _ listener: Listener,
    _ keys: ArraySlice<String>,
    from place: Place
  ) -> Bool {
    guard let key = keys.first else {
      guard let index = place.listeners.firstIndex(where: { $0 === listener }) else { return false }
      place.listeners.remove(at: index)
      return true
    }
    let placeKey = DatabaseKey(key)
    guard let next = place.places[placeKey], remove(listener, keys.dropFirst(), from: next) else {
      return false
    }
    if next.isUnused { place.places[placeKey] = nil }
    return true
  }

  /// Returns all listeners, in no particular order.
  var all: [Listener] {
    var found: [Listener] = []
    func collect(_ place: Place) {
      found += place.listeners
      for next in place.places.values { collect(next) }
    }
    collect(root)
    return found
  }

  /// Returns the events for everyone who listens at, above or below what a write has changed.
  ///
  /// The windows of queries move to the tree after the write.
  func events(
    of write: ResolvedWrite,
    before: TreeView,
    after: TreeView
  ) throws -> [(listener: Listener, event: DatabaseSessionEvent)] {
    var events: [(Listener, DatabaseSessionEvent)] = []
    let whole = WholeEvents(write)
    var place: Place? = root
    for depth in 0...write.base.count {
      guard let found = place else { return events }
      for listener in found.listeners {
        if listener.window != nil {
          let locations = write.locations
          if let event = try Self.windowEvent(listener, locations, after) {
            events.append((listener, event))
          }
        } else {
          events.append((listener, whole.event(tag: listener.tag)))
        }
      }
      if depth < write.base.count { place = found.places[DatabaseKey(write.base.keys[depth])] }
    }
    guard let place else { return events }
    for (key, next) in place.places {
      try Self.collectBelow(next, write.base.child(key.text), write, before, after, &events)
    }
    return events
  }

  /// Adds the events for those who listen below the base of a write.
  private static func collectBelow(
    _ place: Place,
    _ path: DatabasePath,
    _ write: ResolvedWrite,
    _ before: TreeView,
    _ after: TreeView,
    _ events: inout [(Listener, DatabaseSessionEvent)]
  ) throws {
    let locations = write.locations.filter {
      $0.wirePath.starts(with: path) || (!$0.isPriority && path.starts(with: $0.path))
    }
    guard !locations.isEmpty else { return }
    if !place.listeners.isEmpty {
      let isReplaced = locations.contains { !$0.isPriority && path.starts(with: $0.path) }
      let plain: EncodedNode? =
        try isReplaced && (before.exists(at: path) || after.exists(at: path))
        ? EncodedNode(after.node(at: path)) : nil
      let members = isReplaced ? nil : WholeEvents(base: path, isMerge: true, locations)
      for listener in place.listeners {
        if listener.window != nil {
          if let event = try windowEvent(listener, locations, after) {
            events.append((listener, event))
          }
        } else if let plain {
          events.append((listener, .value(path, plain, tag: listener.tag)))
        } else if let members {
          events.append((listener, members.event(tag: listener.tag)))
        }
      }
    }
    for (key, next) in place.places {
      try collectBelow(next, path.child(key.text), write, before, after, &events)
    }
  }

  /// Returns the event for a listener with a query; nil if nothing that it sees has changed.
  private static func windowEvent(
    _ listener: Listener,
    _ locations: [ResolvedWrite.Location],
    _ after: TreeView
  ) throws -> DatabaseSessionEvent? {
    guard var window = listener.window else { return nil }
    let path = listener.path
    let isReplaced = locations.contains { !$0.isPriority && path.starts(with: $0.path) }
    if isReplaced {
      let hadEntries = !window.entries.isEmpty
      window = try QueryWindow(window.query, at: path, in: after)
      listener.window = window
      guard hadEntries || !window.entries.isEmpty else { return nil }
      return .value(path, EncodedNode(try window.node(in: after)), tag: listener.tag)
    }
    let below = locations.filter { $0.path.count > path.count && $0.path.starts(with: path) }
    let keys = Set(below.map { DatabaseKey($0.path.keys[path.count]) })
    let changed = try window.update(Array(keys), in: after)
    listener.window = window
    let selected = Set(window.entries.map(\.key))
    let members = try changed.map { key in
      (
        path: DatabasePath([key.text]),
        node: selected.contains(key) ? try after.node(at: path.child(key.text)) : .empty
      )
    }
    guard let first = members.first else { return nil }
    if members.count == 1 {
      return .value(path.appending(first.path), EncodedNode(first.node), tag: listener.tag)
    }
    return .merge(path, EncodedMembers(members), tag: listener.tag)
  }
}

/// The event of a write for those who see all of it, encoded once for all of them.
private struct WholeEvents {
  private enum Event {
    case value(DatabasePath, EncodedNode)
    case merge(DatabasePath, EncodedMembers)
  }

  private let event: Event

  init(_ write: ResolvedWrite) {
    self.init(base: write.base, isMerge: write.isMerge, write.locations)
  }

  init(base: DatabasePath, isMerge: Bool, _ locations: [ResolvedWrite.Location]) {
    if !isMerge, let location = locations.first {
      event = .value(location.wirePath, EncodedNode(location.node))
    } else {
      let members = locations.map { (path: $0.wirePath.dropFirst(base.count), node: $0.node) }
      event = .merge(base, EncodedMembers(members))
    }
  }

  func event(tag: Int?) -> DatabaseSessionEvent {
    switch event {
    case .value(let path, let node): .value(path, node, tag: tag)
    case .merge(let path, let members): .merge(path, members, tag: tag)
    }
  }
}
