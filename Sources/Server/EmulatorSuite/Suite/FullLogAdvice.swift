import Synchronization
import TriggerDelivery

/// Says why the event log is full when no function takes its events.
final class FullLogAdvice: Sendable {
  private let deliveries = Mutex<DeliveryService?>(nil)

  /// Takes over the service that takes the events; it is made after the document store.
  func follow(_ service: DeliveryService) { deliveries.withLock { $0 = service } }

  /// The advice while nothing was deployed since the start; nil otherwise.
  var text: String? {
    guard let service = deliveries.withLock({ $0 }), !service.isDeployed else { return nil }
    let count = service.eventsBeforeDeployment
    return "no functions were deployed since the start, and \(count) events wait for the first "
      + "deployment (`hearth deploy` builds and deploys)"
  }
}
