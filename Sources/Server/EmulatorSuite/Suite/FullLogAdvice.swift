import Synchronization
import TriggerDelivery

/// The explanation for a full event log while no functions consume its events.
final class FullLogAdvice: Sendable {
  private let deliveries = Mutex<DeliveryService?>(nil)

  /// Sets the service that consumes the events, which is created after the document store.
  func follow(_ service: DeliveryService) { deliveries.withLock { $0 = service } }

  /// The explanation; nil once functions were deployed since the start.
  var text: String? {
    guard let service = deliveries.withLock({ $0 }), !service.isDeployed else { return nil }
    let count = service.eventsBeforeDeployment
    return "no functions were deployed since the start, and \(count) events wait for the first "
      + "deployment (`hearth deploy` builds and deploys)"
  }
}
