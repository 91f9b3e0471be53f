import Manifests
import TriggerDelivery

/// A check of functions' triggers, before the functions replace any others.
enum TriggerCheck {
  /// Throws a `StatusConvertible` that names the function whose trigger is invalid.
  static func validate(_ functions: [String: FunctionEndpoint]) throws {
    _ = try TriggerTable(functions: functions)
    for endpoint in functions.values { _ = (DeliveryRetries(endpoint), DispatchLimits(endpoint)) }
  }
}
