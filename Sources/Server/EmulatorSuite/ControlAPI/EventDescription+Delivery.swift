import DocumentModel
import TriggerDelivery

extension EventDescription {
  /// Creates a description in the form that `hearth events` shows.
  ///
  /// Only the delivery service knows `isRunning` and the reason.
  init(_ delivery: Delivery, isRunning: Bool, reason: WaitReason? = nil) {
    self.init(
      id: delivery.id.description,
      state: isRunning ? "running" : delivery.state.rawValue,
      function: delivery.id.function,
      document: delivery.subject,
      kind: delivery.changeKind,
      attempts: delivery.attempts,
      crashes: delivery.crashes,
      time: delivery.commitTime.description,
      due: isRunning ? nil : reason?.time?.description,
      settled: delivery.settledTime?.description,
      error: delivery.lastError,
      cause: delivery.cause?.description
    )
    guard !isRunning, let reason else { return }
    waits = reason.text
    waitReason = reason.code
  }
}
