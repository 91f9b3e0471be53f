import DequeModule

/// The invocations of one function that wait for a worker, in order of arrival.
///
/// Those that must run apart wait in a lane of their own, because they need another kind of place.
struct InvocationQueue {
  typealias ID = FunctionScheduler.InvocationID

  /// One that waits.
  struct Entry: Equatable {
    /// The time that it may take once it runs.
    var timeout: Duration
    /// When the wait ends in vain.
    var waitsUntil: Duration
    /// The bytes kept in memory for it.
    var bytes: Int
    var runsApart: Bool
    var sendsFailed = 0
  }

  /// Ids in order of arrival; those that have left are skipped.
  private struct Lane {
    var ids = Deque<ID>()
    var count = 0
  }

  private let countMax: Int
  private let bytesMax: Int
  private var entries: [ID: Entry] = [:]
  private var ordinary = Lane()
  private var apart = Lane()
  private var bytes = 0

  /// An empty queue with room for so many invocations and bytes.
  init(countMax: Int, bytesMax: Int) {
    self.countMax = countMax
    self.bytesMax = bytesMax
  }

  /// How many wait.
  var count: Int { entries.count }

  var isEmpty: Bool { entries.isEmpty }

  /// How many wait that need or do not need a worker for themselves.
  func count(runningApart: Bool) -> Int { runningApart ? apart.count : ordinary.count }

  /// All that wait, in no order.
  var all: [ID: Entry] { entries }

  /// Whether an invocation waits.
  func contains(_ id: ID) -> Bool { entries[id] != nil }

  /// Whether there is room for one more.
  func takes(bytes more: Int) -> Bool { entries.count < countMax && bytes + more <= bytesMax }

  /// The first in a lane.
  func first(runningApart: Bool) -> ID? {
    // The lanes begin with one that waits: see `skipLeft`.
    runningApart ? apart.ids.first : ordinary.ids.first
  }

  /// Adds one at the end.
  mutating func append(_ id: ID, _ entry: Entry) {
    add(id, entry) { $0.append(id) }
  }

  /// Adds one that has waited already, before all others.
  mutating func prepend(_ id: ID, _ entry: Entry) {
    add(id, entry) { $0.prepend(id) }
  }

  /// Takes one out, wherever it stands.
  mutating func remove(_ id: ID) -> Entry? {
    guard let entry = entries.removeValue(forKey: id) else { return nil }
    bytes -= entry.bytes
    change(entry.runsApart) { lane, entries in
      lane.count -= 1
      Self.skipLeft(&lane, entries)
    }
    return entry
  }

  /// Takes all out, oldest first.
  mutating func removeAll() -> [(id: ID, entry: Entry)] {
    defer { self = InvocationQueue(countMax: countMax, bytesMax: bytesMax) }
    return entries.sorted { $0.key.number < $1.key.number }.map { ($0.key, $0.value) }
  }

  private mutating func add(_ id: ID, _ entry: Entry, _ place: (inout Deque<ID>) -> Void) {
    entries[id] = entry
    bytes += entry.bytes
    change(entry.runsApart) { lane, _ in
      lane.count += 1
      place(&lane.ids)
    }
  }

  private mutating func change(_ isApart: Bool, _ change: (inout Lane, [ID: Entry]) -> Void) {
    if isApart { change(&apart, entries) } else { change(&ordinary, entries) }
  }

  /// Lets the lane begin with one that waits, and those that wait bound it.
  private static func skipLeft(_ lane: inout Lane, _ entries: [ID: Entry]) {
    while let first = lane.ids.first, entries[first] == nil { lane.ids.removeFirst() }
    if lane.ids.count > 2 * lane.count + 16 { lane.ids.removeAll { entries[$0] == nil } }
  }
}
