import FlowControl
import Manifests

extension FunctionEndpoint {
  /// True if the requests come from the event log, which delivers them again after a failure.
  var isFedByTheServer: Bool {
    eventTrigger != nil || scheduleTrigger != nil || taskQueueTrigger != nil
  }
}

extension FunctionScheduler {
  /// The limits of one function: its own options, and the pool's settings for the rest.
  struct Limits {
    var concurrency: Int
    var instancesMin: Int
    var instancesMax: Int
    /// The maximum number of workers that run one isolated invocation each at the same time.
    var isolatedMax: Int
    var queueMax: Int
    var queueBytesMax: Int
    /// The time that an invocation may wait for a worker; nil for as long as it may run.
    var queueTimeout: Duration?
    /// The time that an invocation may wait while no place is left for the first worker.
    var placeTimeout: Duration
    /// The time that a deployment waits for a place for the first worker.
    var startPlaceTimeout: Duration
    var startTimeout: Duration
    var cancelGrace: Duration
    var terminateGrace: Duration
    var idleTimeout: Duration
    var backOff: BackOff

    /// Creates the limits of `endpoint`, raising values that are too small.
    init(_ endpoint: FunctionEndpoint, _ configuration: WorkerFleet.Configuration) {
      concurrency = max(1, endpoint.concurrency ?? FunctionEndpoint.concurrencyDefault)
      instancesMin = max(0, endpoint.minInstances ?? 0)
      instancesMax = max(1, instancesMin, endpoint.maxInstances ?? configuration.instancesMax)
      isolatedMax = FunctionEndpoint.isolatedMax(instances: instancesMax)
      queueMax = configuration.queueMax
      queueBytesMax = configuration.queueBytesMax
      // A client has a timeout of its own; a delivery from the event log is retried.
      queueTimeout = endpoint.isFedByTheServer ? configuration.queueTimeout : nil
      placeTimeout =
        endpoint.isFedByTheServer ? configuration.eventPlaceTimeout : configuration.placeTimeout
      startPlaceTimeout = configuration.placeTimeout
      startTimeout = configuration.startTimeout
      cancelGrace = configuration.cancelGrace
      terminateGrace = configuration.terminateGrace
      idleTimeout = configuration.idleTimeout
      backOff = configuration.restartBackOff
    }

    /// Adapts the limits to a debugged process, which may be paused and must not be ended.
    mutating func suspend(for time: Duration) {
      instancesMin = 1
      instancesMax = 1
      isolatedMax = 0
      queueTimeout = time
      placeTimeout = time
      startPlaceTimeout = time
      startTimeout = time
      cancelGrace = time
      terminateGrace = time
      idleTimeout = time
    }
  }
}
