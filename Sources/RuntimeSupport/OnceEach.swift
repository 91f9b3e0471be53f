import Synchronization

/// Says of each name whether it is new, so that what may happen for ever is logged once.
///
/// Past `namesMax` names none is new any more: a client with random names fills no log.
package final class OnceEach: Sendable {
  private let namesMax: Int
  private let seen = Mutex<Set<String>>([])

  /// A memory of nothing yet.
  package init(namesMax: Int = 16) {
    self.namesMax = namesMax
  }

  /// Whether `name` comes for the first time.
  package func isNew(_ name: String) -> Bool {
    seen.withLock { $0.count < namesMax && $0.insert(name).inserted }
  }
}
