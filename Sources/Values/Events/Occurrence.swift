package import DocumentModel
package import RuntimeSupport

/// What makes functions run, other than a document's change.
package enum Occurrence: Sendable, Hashable {
  /// An event of another service, for every function whose trigger fits.
  case event(CloudEvent)
  /// A run of a scheduled function that was due at `time`.
  case schedule(function: String, time: Timestamp)
  /// A task of a queue, which is named after its function.
  case task(EnqueuedTask)
}

/// A task as it was put into a queue.
package struct EnqueuedTask: Sendable, Hashable {
  /// The last part of its resource name, unique in its queue.
  package var id: String
  /// The queue, which has its function's name.
  package var queue: String
  /// What the function gets as its request's body.
  package var body: [UInt8]
  /// Headers that the sender adds to the request, by name.
  package var headers: [String: String]
  /// The time before which the task is not tried.
  package var scheduleTime: Timestamp
  /// How long one try may take, in seconds.
  package var dispatchDeadline: Double
  /// Where the task goes; nil for the function of its queue.
  package var target: TaskTarget?

  /// A task of a queue.
  package init(
    id: String,
    queue: String,
    body: [UInt8],
    headers: [String: String] = [:],
    scheduleTime: Timestamp,
    dispatchDeadline: Double = Self.dispatchDeadlineDefault,
    target: TaskTarget? = nil
  ) {
    self.id = id
    self.queue = queue
    self.body = body
    self.headers = headers
    self.scheduleTime = scheduleTime
    self.dispatchDeadline = dispatchDeadline
    self.target = target
  }

  /// Firebase's own default, in seconds.
  package static let dispatchDeadlineDefault = 60.0
}
