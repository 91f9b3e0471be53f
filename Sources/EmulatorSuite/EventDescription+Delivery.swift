import DocumentModel
import Events
import TriggerDelivery

extension EventDescription {
  /// A delivery as `hearth events` shows it; `isRunning` is known to the service alone.
  init(_ delivery: Delivery, isRunning: Bool) {
    self.init(
      id: delivery.id.description,
      state: isRunning ? "running" : delivery.state.rawValue,
      function: delivery.id.function,
      document: delivery.subject,
      kind: delivery.changeKind,
      attempts: delivery.attempts,
      crashes: delivery.crashes,
      time: delivery.commitTime.description,
      due: delivery.state.isSettled ? nil : delivery.dueTime.description,
      settled: delivery.settledTime?.description,
      error: delivery.lastError,
      cause: delivery.cause?.description
    )
  }
}

extension Delivery {
  /// What happened; a document's `written` event is told by what was done to it.
  fileprivate var changeKind: String {
    if case .document(let change, _) = content { change.kind.rawValue } else { kind }
  }
}
