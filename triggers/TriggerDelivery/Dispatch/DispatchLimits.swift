package import Invocation

/// How many deliveries of a function may run at once, and how fast they may start.
package struct DispatchLimits: Sendable, Hashable {
  /// Deliveries that run at the same time.
  package var concurrentMax: Int
  /// Starts in a second; nil for no bound.
  package var perSecondMax: Double?
  /// Deliveries that run at the same time each in a worker for itself.
  package var apartMax: Int

  /// Limits.
  package init(
    concurrentMax: Int = Self.concurrentDefault,
    perSecondMax: Double? = nil,
    apartMax: Int = FunctionEndpoint.apartMax(instances: FunctionEndpoint.instancesDefault)
  ) {
    self.concurrentMax = concurrentMax
    self.perSecondMax = perSecondMax
    self.apartMax = apartMax
  }

  /// The limits of a deployed function; a task queue has Cloud Tasks' defaults.
  ///
  /// The limit never exceeds what the function's workers take: what waits longer waits here, where
  /// it costs little.
  package init(_ endpoint: FunctionEndpoint) {
    self.init()
    if let queue = endpoint.taskQueueTrigger {
      concurrentMax = max(1, queue.rateLimits?.maxConcurrentDispatches ?? 1000)
      perSecondMax = max(0.001, queue.rateLimits?.maxDispatchesPerSecond ?? 500)
    }
    concurrentMax = min(concurrentMax, endpoint.capacity)
    apartMax = FunctionEndpoint.apartMax(instances: endpoint.instances)
  }

  /// As many as two workers take.
  package static let concurrentDefault = 2 * FunctionEndpoint.concurrencyDefault
}
