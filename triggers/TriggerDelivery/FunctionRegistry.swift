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
    /// Those of functions that only the deployment before has, whose deliveries may still run.
    fileprivate(set) var formerRetries: [String: DeliveryRetries] = [:]

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

  /// When failed deliveries of a function are tried again.
  func retries(of function: String) -> DeliveryRetries {
    let current = current
    return current?.retries[function] ?? current?.formerRetries[function] ?? DeliveryRetries()
  }

  /// Whether a function is deployed that takes requests, and not events.
  func takesRequests(_ function: String) -> Bool {
    guard let endpoint = current?.endpoints[function] else { return false }
    return endpoint.httpsTrigger != nil || endpoint.callableTrigger != nil
      || endpoint.taskQueueTrigger != nil
  }

  /// Makes this the present deployment.
  func update(_ new: Deployment) {
    deployment.withLock { deployment in
      let former = deployment?.retries ?? [:]
      deployment = new
      deployment?.formerRetries = former
    }
  }
}
