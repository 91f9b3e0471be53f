import Invocation
import RuntimeSupport

extension FunctionScheduler {
  /// The bounds of one function: its own options, and the pool's settings for the rest.
  struct Limits {
    var concurrency: Int
    var instancesMin: Int
    var instancesMax: Int
    var queueMax: Int
    var startTimeout: Duration
    var cancelGrace: Duration
    var terminateGrace: Duration
    var idleTimeout: Duration
    var backOff: BackOff

    /// The bounds of `endpoint`, each at least what makes sense.
    init(_ endpoint: FunctionEndpoint, _ configuration: WorkerFleet.Configuration) {
      concurrency = max(1, endpoint.concurrency ?? WorkerFleet.concurrencyDefault)
      instancesMin = max(0, endpoint.minInstances ?? 0)
      instancesMax = max(1, instancesMin, endpoint.maxInstances ?? configuration.instancesMax)
      queueMax = configuration.queueMax
      startTimeout = configuration.startTimeout
      cancelGrace = configuration.cancelGrace
      terminateGrace = configuration.terminateGrace
      idleTimeout = configuration.idleTimeout
      backOff = configuration.restartBackOff
    }
  }
}
