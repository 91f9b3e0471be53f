package import DocumentModel

/// The reason why a pending delivery does not run.
package enum WaitReason: Sendable, Hashable {
  /// No functions have been deployed since the start.
  case nothingDeployed
  /// The current deployment does not contain the function.
  case notDeployed(String, since: Timestamp, keptUntil: Timestamp)
  /// The task queue was paused on request.
  case queuePaused(String)
  /// No worker of the function is available; the error is from the last attempt to start one.
  case noWorker(since: Timestamp, error: String?, nextAttempt: Timestamp?)
  /// An attempt has failed; the next attempt starts at this time.
  case nextAttempt(Timestamp)
  /// The task is scheduled for later, or the fault mode delays the event.
  case notDue(Timestamp)
  /// An earlier event of the same document has not ended.
  case earlierEvent(DeliveryID, isRunning: Bool)
  /// The function runs its maximum number of deliveries.
  case concurrency(Int)
  /// The function has reached its maximum number of starts per second.
  case rateLimit(until: Timestamp)
  /// Earlier deliveries of the function start first, in a moment.
  case turn

  /// The reason's name in JSON.
  package var code: String {
    switch self {
    case .nothingDeployed: "nothingDeployed"
    case .notDeployed: "notDeployed"
    case .queuePaused: "queuePaused"
    case .noWorker: "noWorker"
    case .nextAttempt: "nextAttempt"
    case .notDue: "notDue"
    case .earlierEvent: "earlierEvent"
    case .concurrency: "concurrency"
    case .rateLimit: "rateLimit"
    case .turn: "turn"
    }
  }

  /// True if all deliveries of the function wait until a developer acts.
  package var needsAction: Bool {
    switch self {
    case .nothingDeployed, .notDeployed, .queuePaused, .noWorker: true
    case .nextAttempt, .notDue, .earlierEvent, .concurrency, .rateLimit, .turn: false
    }
  }

  /// The time of the delivery's next attempt; nil if it is not known.
  package var time: Timestamp? {
    switch self {
    case .nextAttempt(let time), .notDue(let time), .rateLimit(let time): time
    case .noWorker(_, _, let time): time
    case .nothingDeployed, .notDeployed, .queuePaused, .earlierEvent, .concurrency, .turn: nil
    }
  }

  /// A readable reason: the obstacle, and the action that removes it.
  package var text: String {
    switch self {
    case .nothingDeployed: "nothing is deployed yet; `hearth deploy` deploys functions"
    case .notDeployed(let function, let since, let until):
      "\(function) has not been deployed since \(since); its events are kept until \(until) "
        + "and run if it is deployed again by then"
    case .queuePaused(let queue):
      "the task queue \(queue) is paused; the method `resume` of Cloud Tasks lets it continue"
    case .noWorker(let since, let error, _):
      "no worker could be started since \(since)" + (error.map { ": \($0)" } ?? "")
    case .nextAttempt(let time): "its last attempt did not succeed; the next one is at \(time)"
    case .notDue(let time): "it is due at \(time)"
    case .earlierEvent(let id, let isRunning):
      "an earlier event of the same document \(isRunning ? "runs" : "waits"): \(id)"
    case .concurrency(let count):
      "the function runs \(count) at once, as many as it may"
    case .rateLimit(let time): "the rate limit of its function lets it start at \(time)"
    case .turn: "earlier events of the function start first"
    }
  }
}
