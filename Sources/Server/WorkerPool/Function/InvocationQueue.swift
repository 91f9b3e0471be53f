import DequeModule

/// The invocations of one function that wait for a worker, in order of arrival.
///
/// Isolated invocations wait in a separate lane, because they need a worker without load.
struct InvocationQueue {
  typealias ID = FunctionScheduler.InvocationID

  struct Entry: Equatable {
    /// The time limit of the invocation once it runs.
    var timeout: Duration
    /// The time at which the wait expires.
    var waitsUntil: Duration
    /// The number of bytes that the request occupies in memory.
    var bytes: Int
    var runsIsolated: Bool
    var sendsFailed = 0
  }

  /// The IDs of a kind of invocation, in order of arrival; removed ones are skipped.
  private struct Lane {
    var ids = Deque<ID>()
    var count = 0
  }

  private let countMax: Int
  private let bytesMax: Int
  private var entries: [ID: Entry] = [:]
  private var ordinary = Lane()
  private var isolated = Lane()
  private var bytes = 0

  /// Creates an empty queue with a maximum number of invocations and bytes.
  init(countMax: Int, bytesMax: Int) {
    self.countMax = countMax
    self.bytesMax = bytesMax
  }

  var count: Int { entries.count }

  var isEmpty: Bool { entries.isEmpty }

  /// Returns the number of waiting invocations that do or do not need a worker to themselves.
  func count(isolated: Bool) -> Int { isolated ? self.isolated.count : ordinary.count }

  /// All waiting invocations, in no particular order.
  var all: [ID: Entry] { entries }

  func contains(_ id: ID) -> Bool { entries[id] != nil }

  /// True if there is room for one more invocation with `more` bytes.
  func takes(bytes more: Int) -> Bool { entries.count < countMax && bytes + more <= bytesMax }

  /// Returns the first invocation in a lane.
  func first(isolated: Bool) -> ID? {
    // A lane never begins with a removed invocation: see `skipLeft`.
    isolated ? self.isolated.ids.first : ordinary.ids.first
  }

  /// Adds an invocation at the end.
  mutating func append(_ id: ID, _ entry: Entry) {
    add(id, entry) { $0.append(id) }
  }

  /// Adds an invocation that has already waited, before all others.
  mutating func prepend(_ id: ID, _ entry: Entry) {
    add(id, entry) { $0.prepend(id) }
  }

  /// Removes an invocation, wherever it is in the queue.
  mutating func remove(_ id: ID) -> Entry? {
    guard let entry = entries.removeValue(forKey: id) else { return nil }
    bytes -= entry.bytes
    change(entry.runsIsolated) { lane, entries in
      lane.count -= 1
      Self.skipLeft(&lane, entries)
    }
    return entry
  }

  /// Removes all invocations and returns them, oldest first.
  mutating func removeAll() -> [(id: ID, entry: Entry)] {
    defer { self = InvocationQueue(countMax: countMax, bytesMax: bytesMax) }
    return entries.sorted { $0.key.number < $1.key.number }.map { ($0.key, $0.value) }
  }

  private mutating func add(_ id: ID, _ entry: Entry, _ place: (inout Deque<ID>) -> Void) {
    entries[id] = entry
    bytes += entry.bytes
    change(entry.runsIsolated) { lane, _ in
      lane.count += 1
      place(&lane.ids)
    }
  }

  private mutating func change(_ isIsolated: Bool, _ change: (inout Lane, [ID: Entry]) -> Void) {
    if isIsolated { change(&isolated, entries) } else { change(&ordinary, entries) }
  }

  /// Removes leading IDs of removed invocations, and bounds the number of other stale IDs.
  private static func skipLeft(_ lane: inout Lane, _ entries: [ID: Entry]) {
    while let first = lane.ids.first, entries[first] == nil { lane.ids.removeFirst() }
    if lane.ids.count > 2 * lane.count + 16 { lane.ids.removeAll { entries[$0] == nil } }
  }
}
