package import DocumentModel
import StatusCodes

/// A destination for tasks, which adds them to the queues of functions.
///
/// Both methods throw `TaskQueueError`.
package protocol TaskEnqueuer: Sendable {
  /// Adds a task and returns its id.
  func enqueue(_ task: OutgoingTask) async throws -> String

  /// Removes a task that has not run yet.
  func delete(id: String, from queue: TaskQueueName) async throws
}

/// A task queue, identified by its function, which has the same name, and its region.
package struct TaskQueueName: Sendable, Hashable {
  package var function: String
  package var region: String

  package init(function: String, region: String) {
    self.function = function
    self.region = region
  }
}

/// A task that is being added to a queue.
package struct OutgoingTask: Sendable {
  package var queue: TaskQueueName
  /// The task's id; nil to let the queue generate one.
  package var id: String?
  package var time: Time
  /// The time limit of one attempt; nil for the queue's own limit.
  package var dispatchDeadline: Duration?
  /// The JSON body for the function: `{"data": …}`.
  package var body: [UInt8]

  /// The time at which the task should run.
  package enum Time: Sendable, Hashable {
    case after(Duration)
    case at(Timestamp)
  }

  /// Creates a task without checking it.
  ///
  /// The enqueuer checks the values.
  package init(
    queue: TaskQueueName,
    id: String?,
    time: Time,
    dispatchDeadline: Duration?,
    body: [UInt8]
  ) {
    self.queue = queue
    self.id = id
    self.time = time
    self.dispatchDeadline = dispatchDeadline
    self.body = body
  }
}

/// The error of a task that could not be added or removed.
public struct TaskQueueError: Error, Sendable, Equatable {
  /// The status of the failure.
  ///
  /// It is `alreadyExists` for an id that is or was in use, `notFound` for a missing task or queue,
  /// and `invalidArgument` for values that no queue would accept.
  public var code: StatusCode
  /// A sentence that explains the failure and what to do about it.
  public var message: String

  /// Creates an error with a status and a message.
  public init(_ code: StatusCode, _ message: String) {
    self.code = code
    self.message = message
  }
}

extension TaskQueueError: CustomStringConvertible {
  /// The name of the code, followed by the message.
  public var description: String { "\(code.name): \(message)" }
}

/// The destination of the tasks of the current invocation, and the options of the app's functions.
package struct TaskQueueing: Sendable {
  package var enqueuer: any TaskEnqueuer
  /// The options of the app's functions by name, including the app's defaults.
  package var options: [String: FunctionOptions]

  package init(enqueuer: any TaskEnqueuer, options: [String: FunctionOptions] = [:]) {
    self.enqueuer = enqueuer
    self.options = options
  }

  /// The destination of tasks in the current task, which the host sets for each invocation.
  ///
  /// Nil outside invocations, where the environment of the process decides.
  @TaskLocal package static var current: TaskQueueing?
}
