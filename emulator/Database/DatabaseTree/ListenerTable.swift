import DatabaseModel

/// A client's interest in a node.
final class Listener {
  let id: UInt64
  let session: UInt64
  let path: DatabasePath
  /// The query as the client gave it; nil for the whole node.
  let query: DatabaseQuery?
  let tag: Int?
  /// The selected children; nil if the client gets all of them.
  var window: QueryWindow?
  /// True if the client gets only the children that its query selects.
  let hasWindow: Bool
  /// What happened since the first value is being read; nil once the client has it.
  var loading: Loading?

  /// What the client must get after its first value.
  struct Loading {
    var touches: [Touch] = []
    /// True if the value must be read again, because too much has happened since.
    var isOutdated = false

    /// The maximum number of touches, which bounds the memory while a long read lasts.
    static let touchesMax = 1000

    /// Everything up to this commit is stored, unless its commit has failed.
    mutating func committed(through sequence: UInt64) {
      for index in touches.indices where touches[index].sequence == nil {
        touches[index].sequence = sequence
      }
    }

    mutating func add(_ change: Touch.Change) {
      touches.append(Touch(change: change))
      guard touches.count > Self.touchesMax else { return }
      touches = []
      isOutdated = true
    }
  }

  /// A change that a listener must get once it has its first value.
  struct Touch {
    var change: Change
    /// A commit at or after the change's own; nil until it is stored.
    var sequence: UInt64?

    enum Change {
      case event(DatabaseSessionEvent)
      /// These children of the queried node have changed.
      case children([DatabaseKey])
    }
  }

  init(
    id: UInt64,
    session: UInt64,
    path: DatabasePath,
    query: DatabaseQuery?,
    tag: Int?,
    hasWindow: Bool
  ) {
    self.id = id
    self.session = session
    self.path = path
    self.query = query
    self.tag = tag
    self.hasWindow = hasWindow
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
        if listener.hasWindow {
          let locations = write.locations
          if let event = try Self.windowEvent(listener, locations, after) {
            events.append((listener, event))
          }
        } else {
          Self.add(whole.event(tag: listener.tag), listener, to: &events)
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
        if listener.hasWindow {
          if let event = try windowEvent(listener, locations, after) {
            events.append((listener, event))
          }
        } else if let plain {
          add(.value(path, plain, tag: listener.tag), listener, to: &events)
        } else if let members {
          add(members.event(tag: listener.tag), listener, to: &events)
        }
      }
    }
    for (key, next) in place.places {
      try collectBelow(next, path.child(key.text), write, before, after, &events)
    }
  }

  /// Adds an event, or keeps it for a listener whose first value is being read.
  private static func add(
    _ event: DatabaseSessionEvent,
    _ listener: Listener,
    to events: inout [(Listener, DatabaseSessionEvent)]
  ) {
    if listener.loading != nil {
      listener.loading?.add(.event(event))
    } else {
      events.append((listener, event))
    }
  }

  /// Returns the event for a listener with a query; nil if nothing that it sees has changed.
  private static func windowEvent(
    _ listener: Listener,
    _ locations: [ResolvedWrite.Location],
    _ after: TreeView
  ) throws -> DatabaseSessionEvent? {
    let path = listener.path
    // The priority of the queried node itself goes with its value.
    let isReplaced = locations.contains { location in
      location.isPriority ? location.path == path : path.starts(with: location.path)
    }
    let below = locations.filter { $0.path.count > path.count && $0.path.starts(with: path) }
    let keys = Array(Set(below.map { DatabaseKey($0.path.keys[path.count]) }))
    guard listener.loading == nil else {
      if isReplaced {
        listener.loading?.isOutdated = true
      } else {
        listener.loading?.add(.children(keys))
      }
      return nil
    }
    guard isReplaced else { return try childrenEvent(listener, keys, after) }
    guard var window = listener.window else { return nil }
    let hadEntries = !window.entries.isEmpty
    window = try QueryWindow(window.query, at: path, in: after)
    listener.window = window
    guard hadEntries || !window.entries.isEmpty else { return nil }
    return .value(path, EncodedNode(try window.node(in: after)), tag: listener.tag)
  }

  /// Returns the event for a listener with a query after some children of its node have changed.
  static func childrenEvent(
    _ listener: Listener,
    _ keys: [DatabaseKey],
    _ after: TreeView
  ) throws -> DatabaseSessionEvent? {
    guard var window = listener.window else { return nil }
    let path = listener.path
    let changed = try window.update(keys, in: after)
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
