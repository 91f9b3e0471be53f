import Invocation
import TriggerDelivery

/// Computes what the triggers will compute of functions, before these replace any others.
enum TriggerCheck {
  /// Throws a `StatusConvertible` that names the function whose trigger makes no sense.
  static func validate(_ functions: [String: FunctionEndpoint]) throws {
    _ = try TriggerTable(functions: functions)
    for endpoint in functions.values { _ = (DeliveryRetries(endpoint), DispatchLimits(endpoint)) }
  }
}
