package import DocumentModel
import RuntimeSupport

/// Takes tasks for the queues of functions.
///
/// Both methods throw `TaskQueueError`.
package protocol TaskEnqueuer: Sendable {
  /// Adds a task and returns its id.
  func enqueue(_ task: OutgoingTask) async throws -> String

  /// Removes a task that has not run yet.
  func delete(id: String, from queue: TaskQueueName) async throws
}

/// A queue by its region and its function, whose name it has.
package struct TaskQueueName: Sendable, Hashable {
  package var function: String
  package var region: String

  /// The queue of a function.
  package init(function: String, region: String) {
    self.function = function
    self.region = region
  }
}

/// A task on its way to a queue.
package struct OutgoingTask: Sendable {
  package var queue: TaskQueueName
  /// The task's id; nil lets the queue make one up.
  package var id: String?
  package var time: Time
  /// How long one try may take; nil for the queue's own limit.
  package var dispatchDeadline: Duration?
  /// The JSON for the function: `{"data": …}`.
  package var body: [UInt8]

  /// When the task must run.
  package enum Time: Sendable, Hashable {
    case after(Duration)
    case at(Timestamp)
  }

  /// A task; the enqueuer that takes it checks it.
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

/// Why a task was not taken or not removed.
public struct TaskQueueError: Error, Sendable, Equatable {
  /// The status of the failure.
  ///
  /// It is `alreadyExists` for an id that is or was in use, `notFound` for a missing task or queue,
  /// and `invalidArgument` for what no queue would accept.
  public var code: StatusCode
  /// What happened, and what to do.
  public var message: String

  /// An error with a status and a sentence.
  public init(_ code: StatusCode, _ message: String) {
    self.code = code
    self.message = message
  }
}

extension TaskQueueError: CustomStringConvertible {
  /// The code's name and the message.
  public var description: String { "\(code.name): \(message)" }
}

/// Where the tasks of the current invocation go, and the options of the functions around it.
package struct TaskQueueing: Sendable {
  package var enqueuer: any TaskEnqueuer
  /// The options of the app's functions, its defaults included.
  package var options: [String: FunctionOptions]

  /// A place for tasks.
  package init(enqueuer: any TaskEnqueuer, options: [String: FunctionOptions] = [:]) {
    self.enqueuer = enqueuer
    self.options = options
  }

  /// The current place, which the host sets around each invocation.
  ///
  /// It is nil outside invocations, where the process's environment decides.
  @TaskLocal package static var current: TaskQueueing?
}
