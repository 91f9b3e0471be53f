import Synchronization

/// A record of the waits that the code under test asked for; none of them takes time.
package final class WaitLog: Sendable {
  private let waits = Mutex<[Duration]>([])

  /// Creates an empty record.
  package init() {}

  /// All waits so far.
  package var all: [Duration] { waits.withLock { $0 } }

  /// Records a wait.
  package func add(_ wait: Duration) { waits.withLock { $0.append(wait) } }
}
