import DocumentModel
import TriggerDelivery

extension EventDescription {
  /// A delivery as `hearth events` shows it; only the service knows `isRunning`.
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
