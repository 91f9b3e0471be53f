import Synchronization
import TriggerDelivery

/// Whether events reach functions, as last set through the hub.
final class TriggerSwitch: Sendable {
  private let state = Mutex(true)

  /// Whether events reach functions now.
  var isEnabled: Bool { state.withLock { $0 } }

  /// Turns all triggers on or off; earlier events are still delivered.
  func set(enabled: Bool, in deliveries: DeliveryService) async throws {
    try await deliveries.setEnabled(enabled)
    state.withLock { $0 = enabled }
  }
}
