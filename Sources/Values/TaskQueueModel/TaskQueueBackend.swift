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
  /// At most `limit` tasks are returned, and fewer if they would take too much memory; `hasMore` is
  /// true if there are, or may be, more after them. If `withBodies` is false, their bodies are
  /// empty.
  func tasks(
    in queue: String,
    after id: String?,
    limit: Int,
    withBodies: Bool
  ) async throws -> (tasks: [QueuedTask], hasMore: Bool)

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
