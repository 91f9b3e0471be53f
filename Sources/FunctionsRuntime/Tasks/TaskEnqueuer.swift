package import DocumentModel
import RuntimeSupport

/// Takes tasks for the queues of functions.
///
/// Both throw `TaskQueueError`.
package protocol TaskEnqueuer: Sendable {
  /// Adds a task and gives back its id.
  func enqueue(_ task: OutgoingTask) async throws -> String

  /// Removes a task that has not run yet.
  func delete(id: String, from queue: TaskQueueName) async throws
}

/// A queue by its place; it has the name of its function.
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
  /// Nil lets the queue make one up.
  package var id: String?
  package var time: Time
  /// How long one try may take; nil for the queue's own limit.
  package var dispatchDeadline: Duration?
  /// The JSON that the function gets: `{"data": …}`.
  package var body: [UInt8]

  /// When the task shall run.
  package enum Time: Sendable, Hashable {
    case after(Duration)
    case at(Timestamp)
  }

  /// A task, checked by whoever takes it.
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
  /// `alreadyExists` for an id that is or was in use, `notFound` for a task or queue that is not
  /// there, `invalidArgument` for what no queue would take.
  public var code: StatusCode
  /// What happened, and what to do.
  public var message: String

  /// An error with a sentence.
  public init(_ code: StatusCode, _ message: String) {
    self.code = code
    self.message = message
  }
}

extension TaskQueueError: CustomStringConvertible {
  /// The code's name and the message.
  public var description: String { "\(code.name): \(message)" }
}

/// Where the tasks of the current invocation go, and what is known of the functions around it.
package struct TaskQueueing: Sendable {
  package var enqueuer: any TaskEnqueuer
  /// The options of the app's functions, its defaults included.
  package var options: [String: FunctionOptions]

  /// A place for tasks.
  package init(enqueuer: any TaskEnqueuer, options: [String: FunctionOptions] = [:]) {
    self.enqueuer = enqueuer
    self.options = options
  }

  /// Set by the host around each invocation; nil outside, where the process's environment decides.
  @TaskLocal package static var current: TaskQueueing?
}
