import HeapModule

/// A priority queue of deadlines with one time per key and fast access to the earliest.
///
/// Changed and removed times stay in the heap until they reach its top, or until they make up most
/// of the heap. The cost of a change therefore does not depend on the number of keys.
struct Deadlines<Key: Hashable> {
  private struct Entry: Comparable {
    var time: Duration
    var key: Key

    static func < (left: Self, right: Self) -> Bool { left.time < right.time }
  }

  /// The number of outdated entries below which the heap is not rebuilt.
  private static var outdatedMax: Int { 64 }

  private var times: [Key: Duration] = [:]
  private var heap = Heap<Entry>()

  var first: Duration? { heap.min?.time }

  /// The number of stored times, including outdated ones.
  var storedCount: Int { heap.count }

  subscript(key: Key) -> Duration? { times[key] }

  /// Sets the time of a key, replacing its previous time.
  mutating func set(_ key: Key, _ time: Duration) {
    if times.updateValue(time, forKey: key) == time { return }
    heap.insert(Entry(time: time, key: key))
    cleanUp()
  }

  mutating func remove(_ key: Key) {
    if times.removeValue(forKey: key) != nil { cleanUp() }
  }

  /// Removes and returns the key with the earliest time, if that time is not after `now`.
  mutating func popDue(_ now: Duration) -> Key? {
    guard let first = heap.min, first.time <= now else { return nil }
    heap.removeMin()
    times[first.key] = nil
    cleanUp()
    return first.key
  }

  /// Removes outdated times from the top of the heap, and bounds the number of others.
  private mutating func cleanUp() {
    while let first = heap.min, times[first.key] != first.time { heap.removeMin() }
    if heap.count > 2 * times.count + Self.outdatedMax {
      heap = Heap(times.map { Entry(time: $1, key: $0) })
    }
  }
}
