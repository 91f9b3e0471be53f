package import Manifests

/// The limits on concurrent deliveries of a function and on the rate of their starts.
package struct DispatchLimits: Sendable, Hashable {
  /// The maximum number of deliveries that run at the same time.
  package var concurrentMax: Int
  /// The maximum number of starts per second; nil for no bound.
  package var perSecondMax: Double?
  /// The maximum number of deliveries that run at the same time, each in a worker of its own.
  package var isolatedMax: Int

  /// Creates limits with the defaults of a function that declares none.
  package init(
    concurrentMax: Int = Self.concurrentDefault,
    perSecondMax: Double? = nil,
    isolatedMax: Int = FunctionEndpoint.isolatedMax(instances: FunctionEndpoint.instancesDefault)
  ) {
    self.concurrentMax = concurrentMax
    self.perSecondMax = perSecondMax
    self.isolatedMax = isolatedMax
  }

  /// Creates the limits of a deployed function; a task queue has Cloud Tasks' defaults.
  ///
  /// The concurrency never exceeds the capacity of the function's workers. Deliveries beyond it
  /// wait here, where waiting is cheap.
  package init(_ endpoint: FunctionEndpoint) {
    self.init()
    if let queue = endpoint.taskQueueTrigger {
      concurrentMax = max(1, queue.rateLimits?.maxConcurrentDispatches ?? 1000)
      perSecondMax = max(0.001, queue.rateLimits?.maxDispatchesPerSecond ?? 500)
    }
    concurrentMax = min(concurrentMax, endpoint.capacity)
    isolatedMax = FunctionEndpoint.isolatedMax(instances: endpoint.instances)
  }

  /// The capacity of two workers.
  package static let concurrentDefault = 2 * FunctionEndpoint.concurrencyDefault
}
