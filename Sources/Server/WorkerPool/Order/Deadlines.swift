import HeapModule

/// The times by which something must be done, one a key, the earliest at hand.
///
/// A time that was changed or dropped stays in the heap until it comes up or until such times are
/// the most of it; so each change costs the same however many keys there are.
struct Deadlines<Key: Hashable> {
  private struct Entry: Comparable {
    var time: Duration
    var key: Key

    static func < (left: Self, right: Self) -> Bool { left.time < right.time }
  }

  /// The outdated entries that are not worth a clean-up.
  private static var outdatedMax: Int { 64 }

  private var times: [Key: Duration] = [:]
  private var heap = Heap<Entry>()

  /// The earliest time.
  var first: Duration? { heap.min?.time }

  /// How many times are stored, outdated ones among them.
  var storedCount: Int { heap.count }

  /// The time of a key.
  subscript(key: Key) -> Duration? { times[key] }

  /// Gives a key its time, in place of the one before.
  mutating func set(_ key: Key, _ time: Duration) {
    if times.updateValue(time, forKey: key) == time { return }
    heap.insert(Entry(time: time, key: key))
    cleanUp()
  }

  /// Drops a key's time.
  mutating func remove(_ key: Key) {
    if times.removeValue(forKey: key) != nil { cleanUp() }
  }

  /// Takes out the key with the earliest time if that time has come.
  mutating func popDue(_ now: Duration) -> Key? {
    guard let first = heap.min, first.time <= now else { return nil }
    heap.removeMin()
    times[first.key] = nil
    cleanUp()
    return first.key
  }

  /// Lets the heap begin with a current time, and bounds it.
  private mutating func cleanUp() {
    while let first = heap.min, times[first.key] != first.time { heap.removeMin() }
    if heap.count > 2 * times.count + Self.outdatedMax {
      heap = Heap(times.map { Entry(time: $1, key: $0) })
    }
  }
}
