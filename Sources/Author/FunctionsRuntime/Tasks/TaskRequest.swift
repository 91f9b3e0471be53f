import Manifests

/// One task, as passed to its handler.
public struct TaskRequest<Payload: Sendable>: Sendable {
  /// The decoded payload of the task.
  public var data: Payload
  /// The name of the queue, which is also the name of the function.
  public var queueName: String
  /// The task's id within the queue, either given when the task was enqueued or generated.
  public var taskName: String
  /// The number of attempts before this one, regardless of their outcome.
  public var retryCount: Int
  /// The number of earlier attempts to which the function responded.
  ///
  /// Attempts that ended without a response, or with a status of 500 or above, do not count.
  public var executionCount: Int
  /// The time at which the task was due; nil if unknown.
  public var scheduledTime: Timestamp?
  /// The HTTP status of the previous attempt; nil in the first attempt.
  public var previousResponse: Int?
  /// The reason for the retry, as stated by Cloud Tasks; nil if it states none.
  public var retryReason: String?
  /// The owner of the request's token.
  ///
  /// In production this is the service account of the queue.
  ///
  /// The token is not verified here, because Cloud Run has verified it before the function runs.
  /// Nil if the request has no token with claims.
  public var caller: AuthenticatedUser?
  /// The id that identifies this invocation in the logs of the server and the worker.
  public var invocationID: String
  /// A logger that adds the id of the invocation to each line.
  public var logger: Logger

  /// Creates a task for a test.
  public init(
    data: Payload,
    queueName: String = "test",
    taskName: String = "test",
    retryCount: Int = 0,
    executionCount: Int = 0,
    scheduledTime: (any PointInTime)? = nil,
    previousResponse: Int? = nil,
    retryReason: String? = nil,
    caller: AuthenticatedUser? = nil,
    invocationID: String = "test",
    logger: Logger = Logger(label: "task")
  ) {
    self.data = data
    self.queueName = queueName
    self.taskName = taskName
    self.retryCount = retryCount
    self.executionCount = executionCount
    self.scheduledTime = scheduledTime?.timestamp
    self.previousResponse = previousResponse
    self.retryReason = retryReason
    self.caller = caller
    self.invocationID = invocationID
    self.logger = logger
  }

  /// The number of this attempt, starting at 1.
  public var attempt: Int { retryCount + 1 }
}

/// The limits on how fast a queue dispatches its tasks.
///
/// A limit that is nil has Cloud Tasks' default.
public struct TaskRateLimits: Sendable, Hashable {
  /// The maximum number of tasks that run at the same time, from 1 to 5000; 1000 by default.
  public var concurrentDispatches: Int?
  /// The maximum number of tasks that start per second, up to 500; 500 by default.
  ///
  /// A value below one is possible, such as 0.1 for a task every ten seconds.
  public var dispatchesPerSecond: Double?

  /// Creates limits, each of which may be nil.
  public init(concurrentDispatches: Int? = nil, dispatchesPerSecond: Double? = nil) {
    self.concurrentDispatches = concurrentDispatches
    self.dispatchesPerSecond = dispatchesPerSecond
  }

  /// The problems of the limits, as sentence endings that follow the function's name.
  var problems: [String] {
    var problems: [String] = []
    let most = FunctionLimits.concurrentTasksMax
    if let concurrentDispatches, !(1...most).contains(concurrentDispatches) {
      problems.append("has \(concurrentDispatches) concurrentDispatches; set 1 to \(most).")
    }
    let rateMax = FunctionLimits.tasksPerSecondMax
    if let rate = dispatchesPerSecond, !(rate > 0 && rate <= Double(rateMax)) {
      problems.append("has \(rate) dispatchesPerSecond; set more than 0, up to \(rateMax).")
    }
    return problems
  }
}
