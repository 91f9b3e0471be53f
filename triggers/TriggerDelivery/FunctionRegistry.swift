import Invocation
import RuntimeSupport
import Synchronization

/// The deployed functions as all parts of the delivery see them.
final class FunctionRegistry: Sendable {
  /// One deployment, worked out once.
  struct Deployment: Sendable {
    let endpoints: [String: FunctionEndpoint]
    let table: TriggerTable
    let retries: [String: DeliveryRetries]
    let limits: [String: DispatchLimits]

    /// Throws a `StatusConvertible` that names the function whose trigger makes no sense.
    init(_ endpoints: [String: FunctionEndpoint]) throws {
      self.endpoints = endpoints
      table = try TriggerTable(functions: endpoints)
      retries = endpoints.mapValues { DeliveryRetries($0) }
      limits = endpoints.mapValues { DispatchLimits($0) }
    }
  }

  private let deployment = Mutex<Deployment?>(nil)

  /// The present deployment; nil before the first one.
  var current: Deployment? { deployment.withLock { $0 } }

  /// Whether a function is deployed that takes requests, and not events.
  func takesRequests(_ function: String) -> Bool {
    guard let endpoint = current?.endpoints[function] else { return false }
    return endpoint.httpsTrigger != nil || endpoint.callableTrigger != nil
      || endpoint.taskQueueTrigger != nil
  }

  /// Makes this the present deployment.
  func update(_ new: Deployment) {
    deployment.withLock { $0 = new }
  }
}
