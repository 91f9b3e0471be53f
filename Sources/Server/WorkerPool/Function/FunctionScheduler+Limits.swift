import Invocation
import RuntimeSupport

extension FunctionEndpoint {
  /// Whether the function's requests come from the event log, which delivers them again.
  var isFedByTheServer: Bool {
    eventTrigger != nil || scheduleTrigger != nil || taskQueueTrigger != nil
  }
}

extension FunctionScheduler {
  /// The bounds of one function: its own options, and the pool's settings for the rest.
  struct Limits {
    var concurrency: Int
    var instancesMin: Int
    var instancesMax: Int
    /// Workers that run one invocation apart at the same time.
    var apartMax: Int
    var queueMax: Int
    var queueBytesMax: Int
    /// How long an invocation may wait for a worker; nil for as long as it may run.
    var queueTimeout: Duration?
    /// How long an invocation may wait while no place is left for the first worker.
    var placeTimeout: Duration
    /// How long a deployment waits for that place.
    var startPlaceTimeout: Duration
    var startTimeout: Duration
    var cancelGrace: Duration
    var terminateGrace: Duration
    var idleTimeout: Duration
    var backOff: BackOff

    /// The bounds of `endpoint`, each at least a sensible minimum.
    init(_ endpoint: FunctionEndpoint, _ configuration: WorkerFleet.Configuration) {
      concurrency = max(1, endpoint.concurrency ?? FunctionEndpoint.concurrencyDefault)
      instancesMin = max(0, endpoint.minInstances ?? 0)
      instancesMax = max(1, instancesMin, endpoint.maxInstances ?? configuration.instancesMax)
      apartMax = FunctionEndpoint.apartMax(instances: instancesMax)
      queueMax = configuration.queueMax
      queueBytesMax = configuration.queueBytesMax
      // A client has its own patience; what the log sends comes again.
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

    /// Adapts the bounds to one worker that stands still at times and must not be ended.
    mutating func suspend(for time: Duration) {
      instancesMin = 1
      instancesMax = 1
      apartMax = 0
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
