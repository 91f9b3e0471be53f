package import DocumentModel
package import RuntimeSupport

/// What the doors of task queues require of the room that keeps and runs the tasks.
///
/// A queue is a function with a `taskQueueTrigger`, under the function's name. Methods that name a
/// queue are called for queues that ``queues()`` lists; for a queue that has gone meanwhile they
/// throw `NOT_FOUND`. All errors are `StatusConvertible`.
package protocol TaskQueueBackend: Sendable {
  /// The queues of the deployed functions, by name.
  func queues() async throws -> [TaskQueue]

  /// Keeps a task durably and runs it at its time.
  ///
  /// Throws `ALREADY_EXISTS` when the queue has a task of this id, or had one that ran or was
  /// deleted in the last hour, as production does. Without an id the backend makes one: random,
  /// without slashes.
  func enqueue(_ task: NewTask, in queue: String) async throws -> QueuedTask

  /// A task that is still to run, for the first time or again; nil when there is none of this id.
  func task(_ id: String, in queue: String) async throws -> QueuedTask?

  /// Tasks still to run that come after an id, ordered by id; at most `limit`, and fewer if they
  /// would take much memory.
  ///
  /// Without bodies those are empty.
  func tasks(
    in queue: String,
    after id: String?,
    limit: Int,
    withBodies: Bool
  ) async throws -> TaskPage

  /// Removes a task that is still to run; a try in progress goes on. False when there is no task.
  func deleteTask(_ id: String, in queue: String) async throws -> Bool

  /// Starts a task now, whatever its time, its back-off and whether the queue is paused.
  ///
  /// Does not wait for the task to end. Nil when there is no task of this id.
  func runTask(_ id: String, in queue: String) async throws -> QueuedTask?

  /// Holds a queue's tasks back, or lets them go on; the setting is durable.
  func setPaused(_ isPaused: Bool, queue: String) async throws -> TaskQueue

  /// Removes all tasks that are still to run.
  func purge(_ queue: String) async throws

  /// Figures of every queue, by name.
  func taskQueueStatistics() async throws -> [String: TaskQueueStatistics]
}

/// A queue of tasks for one function.
package struct TaskQueue: Sendable, Hashable {
  /// The function's name.
  package var id: String
  /// The regions of the function, at least one.
  package var locations: [String]
  package var isPaused: Bool
  /// The limits that the function declares; nil members have Cloud Tasks' defaults.
  package var rateLimits: FunctionEndpoint.RateLimits
  package var retryConfig: FunctionEndpoint.RetryConfig

  /// A queue as its function declares it.
  package init(
    id: String,
    locations: [String],
    isPaused: Bool = false,
    rateLimits: FunctionEndpoint.RateLimits = .init(),
    retryConfig: FunctionEndpoint.RetryConfig = .init()
  ) {
    self.id = id
    self.locations = locations
    self.isPaused = isPaused
    self.rateLimits = rateLimits
    self.retryConfig = retryConfig
  }
}

/// Some of a queue's tasks.
package struct TaskPage: Sendable, Hashable {
  package var tasks: [QueuedTask]
  /// Whether there are, or may be, more tasks after these.
  package var hasMore: Bool

  /// A page.
  package init(_ tasks: [QueuedTask], hasMore: Bool) {
    self.tasks = tasks
    self.hasMore = hasMore
  }
}

/// A task as its sender describes it, checked.
package struct NewTask: Sendable, Hashable {
  /// The sender's name for the task, `[A-Za-z0-9_-]{1,500}`; nil lets the backend make one.
  package var id: String?
  /// The body of the request to the function: JSON, `{"data": …}`.
  package var body: [UInt8]
  /// The sender's header fields, without those that Cloud Tasks sets itself.
  package var headers: [String: String]
  /// When to run the task first; nil means at once.
  package var scheduleTime: Timestamp?
  /// How long one try may take.
  package var dispatchDeadline: Duration
  /// Where the task goes; nil for the function of its queue.
  package var target: TaskTarget?

  /// A task to be kept.
  package init(
    id: String? = nil,
    body: [UInt8],
    headers: [String: String] = [:],
    scheduleTime: Timestamp? = nil,
    dispatchDeadline: Duration = .seconds(60),
    target: TaskTarget? = nil
  ) {
    self.id = id
    self.body = body
    self.headers = headers
    self.scheduleTime = scheduleTime
    self.dispatchDeadline = dispatchDeadline
    self.target = target
  }
}

/// A task that is still to run, or to run again.
package struct QueuedTask: Sendable, Hashable {
  package var id: String
  package var body: [UInt8]
  package var headers: [String: String]
  /// When it is tried next.
  package var scheduleTime: Timestamp
  package var createTime: Timestamp
  package var dispatchDeadline: Duration
  /// Where the task goes; nil for the function of its queue.
  package var target: TaskTarget?
  /// How often the task was tried, the try in progress included.
  package var dispatchCount: Int
  /// How many of the tries were answered.
  package var responseCount: Int
  package var firstAttempt: Attempt?
  package var lastAttempt: Attempt?

  /// One try of a task.
  package struct Attempt: Sendable, Hashable {
    package var scheduleTime: Timestamp
    package var dispatchTime: Timestamp?
    package var responseTime: Timestamp?
    /// What the function answered; nil while it runs.
    package var code: StatusCode?

    /// A try that has started.
    package init(
      scheduleTime: Timestamp,
      dispatchTime: Timestamp?,
      responseTime: Timestamp? = nil,
      code: StatusCode? = nil
    ) {
      self.scheduleTime = scheduleTime
      self.dispatchTime = dispatchTime
      self.responseTime = responseTime
      self.code = code
    }
  }

  /// A task that has not been tried yet.
  package init(id: String, task: NewTask, createTime: Timestamp) {
    self.id = id
    self.body = task.body
    self.headers = task.headers
    self.scheduleTime = task.scheduleTime ?? createTime
    self.createTime = createTime
    self.dispatchDeadline = task.dispatchDeadline
    self.target = task.target
    self.dispatchCount = 0
    self.responseCount = 0
  }
}

/// How busy a queue is.
package struct TaskQueueStatistics: Sendable, Hashable, Codable {
  /// Tasks still to run, including those in progress.
  package var tasksCount: Int
  /// Tries in progress.
  package var concurrentDispatchesCount: Int
  /// Tries that ended in the last minute.
  package var executedLastMinuteCount: Int

  /// The figures at one moment.
  package init(tasksCount: Int, concurrentDispatchesCount: Int, executedLastMinuteCount: Int) {
    self.tasksCount = tasksCount
    self.concurrentDispatchesCount = concurrentDispatchesCount
    self.executedLastMinuteCount = executedLastMinuteCount
  }
}
