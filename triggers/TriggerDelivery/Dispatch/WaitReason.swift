package import DocumentModel

/// Why a pending delivery does not run.
package enum WaitReason: Sendable, Hashable {
  /// No function was ever deployed.
  case nothingDeployed
  /// The present deployment lacks the function.
  case notDeployed(String, since: Timestamp, keptUntil: Timestamp)
  /// Somebody has paused the task queue.
  case queuePaused(String)
  /// No worker of the function can be had; the error is the last attempt's.
  case noWorker(since: Timestamp, error: String?, nextAttempt: Timestamp?)
  /// An attempt has failed, and the next one has a time.
  case nextAttempt(Timestamp)
  /// It is a task of a later time, or is delayed on purpose.
  case notDue(Timestamp)
  /// An earlier event of the same document has not ended.
  case earlierEvent(DeliveryID, isRunning: Bool)
  /// The function runs as many deliveries as it may.
  case concurrency(Int)
  /// The function starts as many deliveries a second as it may.
  case rateLimit(until: Timestamp)
  /// Another server that shares the store has the delivery.
  case otherServer
  /// Earlier deliveries of the function start first, which takes a moment.
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
    case .otherServer: "otherServer"
    case .turn: "turn"
    }
  }

  /// Whether all deliveries of the function wait until somebody does something.
  package var needsAction: Bool {
    switch self {
    case .nothingDeployed, .notDeployed, .queuePaused, .noWorker: true
    case .nextAttempt, .notDue, .earlierEvent, .concurrency, .rateLimit, .otherServer, .turn: false
    }
  }

  /// When the delivery is attempted next, as far as that is known.
  package var time: Timestamp? {
    switch self {
    case .nextAttempt(let time), .notDue(let time), .rateLimit(let time): time
    case .noWorker(_, _, let time): time
    case .nothingDeployed, .notDeployed, .queuePaused, .earlierEvent, .concurrency, .otherServer,
      .turn:
      nil
    }
  }

  /// The reason for people: what is waited for, and what to do about it.
  package var text: String {
    switch self {
    case .nothingDeployed: "nothing is deployed yet; `hearth deploy` deploys functions"
    case .notDeployed(let function, let since, let until):
      "\(function) has not been deployed since \(since); its events are kept until \(until) "
        + "and run if it is deployed again by then"
    case .queuePaused(let queue):
      "the task queue \(queue) is paused; the method `resume` of Cloud Tasks lets it go on"
    case .noWorker(let since, let error, _):
      "no worker could be started since \(since)" + (error.map { ": \($0)" } ?? "")
    case .nextAttempt(let time): "its last attempt did not succeed; the next one is at \(time)"
    case .notDue(let time): "it is due at \(time)"
    case .earlierEvent(let id, let isRunning):
      "an earlier event of the same document \(isRunning ? "runs" : "waits"): \(id)"
    case .concurrency(let count):
      "the function runs \(count) at once, as many as it may"
    case .rateLimit(let time): "the rate limit of its function lets it start at \(time)"
    case .otherServer: "another server that shares the store delivers it"
    case .turn: "earlier events of the function start first"
    }
  }
}
