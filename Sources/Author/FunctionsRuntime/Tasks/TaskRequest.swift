/// One task, as its handler gets it.
public struct TaskRequest<Payload: Sendable>: Sendable {
  /// The enqueued data.
  public var data: Payload
  /// The queue's name, which is the function's.
  public var queueName: String
  /// The task's id within the queue: the one given when it was enqueued, or a made-up one.
  public var taskName: String
  /// The number of tries before this one, whatever their outcome.
  public var retryCount: Int
  /// The number of answers that the function has given to earlier tries.
  ///
  /// It leaves out tries that ended without an answer, or with a status of 500 and above.
  public var executionCount: Int
  /// When the task was due; nil when unknown.
  public var scheduledTime: Timestamp?
  /// The HTTP status of the previous try; nil on the first one.
  public var previousResponse: Int?
  /// Why the task is tried again, in Cloud Tasks' words.
  public var retryReason: String?
  /// The owner of the request's token; in production, the queue's service account.
  ///
  /// Cloud Run has verified the token before the function runs; here its claims are only read.
  public var caller: AuthenticatedUser?
  /// The id that follows this invocation through the logs of server and worker.
  public var invocationID: String
  /// A logger whose lines carry the invocation's id.
  public var logger: Logger

  /// A task as a test makes one.
  public init(
    data: Payload,
    queueName: String = "test",
    taskName: String = "test",
    retryCount: Int = 0,
    executionCount: Int = 0,
    scheduledTime: Timestamp? = nil,
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
    self.scheduledTime = scheduledTime
    self.previousResponse = previousResponse
    self.retryReason = retryReason
    self.caller = caller
    self.invocationID = invocationID
    self.logger = logger
  }

  /// The number of this try, from 1.
  public var attempt: Int { retryCount + 1 }
}

/// How fast a queue hands out its tasks; nil members have Cloud Tasks' defaults.
public struct TaskRateLimits: Sendable, Hashable {
  /// Tasks that run at the same time; 1000 by default.
  public var concurrentDispatches: Int?
  /// Tasks that start in a second; 500 by default, and a number below one is possible.
  public var dispatchesPerSecond: Double?

  /// Limits, each optional.
  public init(concurrentDispatches: Int? = nil, dispatchesPerSecond: Double? = nil) {
    self.concurrentDispatches = concurrentDispatches
    self.dispatchesPerSecond = dispatchesPerSecond
  }

  /// The problems of the limits, as ends of sentences.
  var problems: [String] {
    var problems: [String] = []
    if let concurrentDispatches, !(1...5000).contains(concurrentDispatches) {
      problems.append("has \(concurrentDispatches) concurrentDispatches; set 1 to 5000.")
    }
    if let dispatchesPerSecond, !(dispatchesPerSecond > 0 && dispatchesPerSecond <= 500) {
      problems.append("has \(dispatchesPerSecond) dispatchesPerSecond; set more than 0, up to 500.")
    }
    return problems
  }
}
