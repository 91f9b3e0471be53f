package import DocumentModel
package import RuntimeSupport

/// The interface of the module that stores and runs tasks, as used by the task queue endpoints.
///
/// A queue is a function with a `taskQueueTrigger`, and has the function's name. Methods that take
/// a queue name expect a queue listed by ``queues()``; they throw `NOT_FOUND` if the queue has been
/// removed since. All errors are `StatusConvertible`.
package protocol TaskQueueBackend: Sendable {
  /// Returns the queues of the deployed functions, ordered by name.
  func queues() async throws -> [TaskQueue]

  /// Stores a task durably and runs it at its scheduled time.
  ///
  /// Throws `ALREADY_EXISTS` if the queue has a task with this id, or had one that ran or was
  /// deleted in the last hour, as production does. Without an id the backend generates a random id
  /// without slashes.
  func enqueue(_ task: NewTask, in queue: String) async throws -> QueuedTask

  /// Returns a task that has yet to run or to be retried; nil if there is no task with this id.
  func task(_ id: String, in queue: String) async throws -> QueuedTask?

  /// Returns pending tasks after an id, ordered by id.
  ///
  /// At most `limit` tasks are returned, and fewer if they would take too much memory. If
  /// `withBodies` is false, their bodies are empty.
  func tasks(
    in queue: String,
    after id: String?,
    limit: Int,
    withBodies: Bool
  ) async throws -> TaskPage

  /// Removes a pending task and returns true; false if there is no such task.
  ///
  /// An attempt in progress is not interrupted.
  func deleteTask(_ id: String, in queue: String) async throws -> Bool

  /// Starts a task now, regardless of its scheduled time, its back-off and a paused queue.
  ///
  /// Does not wait for the task to end. Nil if there is no task with this id.
  func runTask(_ id: String, in queue: String) async throws -> QueuedTask?

  /// Pauses or resumes a queue; the setting is durable.
  func setPaused(_ isPaused: Bool, queue: String) async throws -> TaskQueue

  /// Removes all pending tasks.
  func purge(_ queue: String) async throws

  /// Returns the statistics of every queue, by name.
  func taskQueueStatistics() async throws -> [String: TaskQueueStatistics]
}

/// A queue of tasks for one function.
package struct TaskQueue: Sendable, Hashable {
  /// The function's name.
  package var id: String
  /// The regions of the function; never empty.
  package var locations: [String]
  package var isPaused: Bool
  /// The limits that the function declares; nil members have Cloud Tasks' defaults.
  package var rateLimits: FunctionEndpoint.RateLimits
  package var retryConfig: FunctionEndpoint.RetryConfig

  /// Creates a queue from its function's declaration.
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

/// A page of a queue's tasks.
package struct TaskPage: Sendable, Hashable {
  package var tasks: [QueuedTask]
  /// True if there are, or may be, more tasks after this page.
  package var hasMore: Bool

  package init(_ tasks: [QueuedTask], hasMore: Bool) {
    self.tasks = tasks
    self.hasMore = hasMore
  }
}

/// A new task as its sender described it, after validation.
package struct NewTask: Sendable, Hashable {
  /// The sender's id for the task, `[A-Za-z0-9_-]{1,500}`; nil lets the backend generate an id.
  package var id: String?
  /// The body of the request to the function: JSON of the form `{"data": …}`.
  package var body: [UInt8]
  /// The sender's header fields, without those that Cloud Tasks sets itself.
  package var headers: [String: String]
  /// The time of the first attempt; nil means immediately.
  package var scheduleTime: Timestamp?
  /// The maximum duration of one attempt.
  package var dispatchDeadline: Duration
  /// The destination of the task; nil for the function of its queue.
  package var target: TaskTarget?

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

/// A task that has yet to run or to be retried.
package struct QueuedTask: Sendable, Hashable {
  package var id: String
  package var body: [UInt8]
  package var headers: [String: String]
  /// The time of the next attempt.
  package var scheduleTime: Timestamp
  package var createTime: Timestamp
  package var dispatchDeadline: Duration
  /// The destination of the task; nil for the function of its queue.
  package var target: TaskTarget?
  /// The number of attempts, including an attempt in progress.
  package var dispatchCount: Int
  /// The number of attempts that received a response.
  package var responseCount: Int
  package var firstAttempt: Attempt?
  package var lastAttempt: Attempt?

  /// One attempt at a task.
  package struct Attempt: Sendable, Hashable {
    package var scheduleTime: Timestamp
    package var dispatchTime: Timestamp?
    package var responseTime: Timestamp?
    /// The status of the function's response; nil while it runs.
    package var code: StatusCode?

    /// Creates an attempt that has started.
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

  /// Creates a task that has not been attempted yet.
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

/// The load of a queue.
package struct TaskQueueStatistics: Sendable, Hashable, Codable {
  /// The number of pending tasks, including those in progress.
  package var tasksCount: Int
  /// The number of attempts in progress.
  package var concurrentDispatchesCount: Int
  /// The number of attempts that ended in the last minute.
  package var executedLastMinuteCount: Int

  package init(tasksCount: Int, concurrentDispatchesCount: Int, executedLastMinuteCount: Int) {
    self.tasksCount = tasksCount
    self.concurrentDispatchesCount = concurrentDispatchesCount
    self.executedLastMinuteCount = executedLastMinuteCount
  }
}
