package import DocumentModel
package import Events
import Manifests
package import StatusCodes

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
    dispatchDeadline: Duration = Self.dispatchDeadlineDefault,
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

extension NewTask {
  /// Throws `INVALID_ARGUMENT` for a time that is more than 30 days ahead, as Cloud Tasks does.
  package static func check(scheduleTime: Timestamp, now: Timestamp) throws(StatusError) {
    guard scheduleTime.microseconds - now.microseconds <= aheadMax else {
      throw .invalidArgument(
        "task.scheduleTime is \(scheduleTime); it must be no more than 30 days from now."
      )
    }
  }

  /// The time for one attempt of a task whose sender names none, as long as a function's default.
  package static let dispatchDeadlineDefault = Duration.seconds(FunctionLimits.secondsDefault)

  private static let aheadMax: Int64 = 30 * 86_400 * 1_000_000
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
