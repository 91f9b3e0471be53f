import DocumentStore
import HTTPSupport
import Synchronization

/// Counts what one listener's queue holds in the memory of all slow clients.
///
/// When others need the bytes of a listener whose client has stalled, its queue is dropped and its
/// targets begin again; the stream goes on.
final class ListenerMemory: ListenMemory {
  private let budget: TransferBudget
  private let present = Mutex<TransferHold?>(nil)
  private let session = Mutex<WeakSession>(WeakSession())

  private struct WeakSession {
    weak var session: ListenSession?
  }

  /// A memory of which nothing is held.
  init(_ budget: TransferBudget) { self.budget = budget }

  /// Sets whose queue is dropped.
  func serve(_ session: ListenSession) {
    self.session.withLock { $0.session = session }
  }

  func hold(_ bytes: Int) -> Bool {
    guard bytes > 0 else {
      present.withLock { $0 = nil }
      return true
    }
    let hold = present.withLock { present in
      // One that the budget has ended can hold nothing more.
      if let hold = present, !hold.isEnded { return hold }
      let hold = TransferHold(budget) { [weak self] in self?.dropQueued() }
      present = hold
      return hold
    }
    return hold.set(bytes)
  }

  func moved(_ bytes: Int) { present.withLock(\.self)?.moved(bytes) }

  private func dropQueued() {
    guard let session = session.withLock(\.session) else { return }
    // The budget is asked by threads that may hold another listener's locks. The task ends by itself,
    // at once.
    Task { session.dropQueued() }
  }
}
