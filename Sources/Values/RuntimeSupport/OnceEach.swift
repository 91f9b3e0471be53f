import Synchronization

/// Says of each name whether it is new, so that recurring events are logged once.
///
/// Once it knows `namesMax` names, no further name is new: a client with random names cannot fill
/// the log.
package final class OnceEach: Sendable {
  private let namesMax: Int
  private let seen = Mutex<Set<String>>([])

  /// A memory without names.
  package init(namesMax: Int = 16) {
    self.namesMax = namesMax
  }

  /// Whether `name` comes up for the first time.
  package func isNew(_ name: String) -> Bool {
    seen.withLock { $0.count < namesMax && $0.insert(name).inserted }
  }
}
