import Synchronization

/// A cache with a limit on its entries, for callers on any thread; a full cache is emptied.
///
/// Keys that may be long or come from clients need a limit on their size, which the caller sets.
package final class BoundedCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let countMax: Int
  private let values = Mutex<[Key: Value]>([:])

  package init(countMax: Int) { self.countMax = countMax }

  /// The value of a key; nil if it is not in the cache.
  package subscript(key: Key) -> Value? {
    get { values.withLock { $0[key] } }
    set {
      values.withLock { values in
        if values.count >= countMax, values[key] == nil { values = [:] }
        values[key] = newValue
      }
    }
  }

  /// Returns the value of a key; calls `make` for a new key, and keeps its result.
  package func value<Failure: Error>(
    of key: Key,
    make: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    if let value = self[key] { return value }
    let value = try make()
    self[key] = value
    return value
  }
}
