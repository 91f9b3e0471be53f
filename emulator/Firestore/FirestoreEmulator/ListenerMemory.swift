import DocumentStore
import HTTPSupport
import Synchronization

/// A listener's account in the memory budget of all slow clients.
///
/// If other clients need the memory of a listener whose client has stalled, the listener's queue is
/// dropped and its targets start over; the stream stays open.
final class ListenerMemory: ListenMemory {
  private let budget: TransferBudget
  private let present = Mutex<TransferHold?>(nil)
  private let session = Mutex<WeakSession>(WeakSession())

  private struct WeakSession {
    weak var session: ListenSession?
  }

  init(_ budget: TransferBudget) { self.budget = budget }

  /// Sets the session whose queue is dropped.
  func serve(_ session: ListenSession) {
    self.session.withLock { $0.session = session }
  }

  func hold(_ bytes: Int) -> Bool {
    guard bytes > 0 else {
      present.withLock { $0 = nil }
      return true
    }
    let hold = present.withLock { present in
      // A hold that the budget has ended cannot hold anything more.
      if let hold = present, !hold.isEnded { return hold }
      let hold = TransferHold(budget, isForResults: true) { [weak self] in self?.dropQueued() }
      present = hold
      return hold
    }
    return hold.set(bytes)
  }

  func moved(_ bytes: Int) { present.withLock(\.self)?.moved(bytes) }

  private func dropQueued() {
    guard let session = session.withLock(\.session) else { return }
    // The budget calls this on threads that may hold another listener's locks, so the queue is
    // dropped in a task. The task is short and ends by itself.
    Task { session.dropQueued() }
  }
}
