import Synchronization

/// A filter that reports whether a name is new, so that recurring events are logged once.
///
/// After `namesMax` names no further name is new, so a client that sends random names cannot fill
/// the log.
package final class OnceEach: Sendable {
  private let namesMax: Int
  private let seen = Mutex<Set<String>>([])

  package init(namesMax: Int = 16) {
    self.namesMax = namesMax
  }

  /// Returns true if `name` occurs for the first time.
  package func isNew(_ name: String) -> Bool {
    seen.withLock { $0.count < namesMax && $0.insert(name).inserted }
  }
}
