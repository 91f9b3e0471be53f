package import DocumentModel

/// A cause other than a document change that makes functions run.
package enum Occurrence: Sendable, Hashable {
  /// An event of another service, for every function with a matching trigger.
  case event(CloudEvent)
  /// A run of a scheduled function that was due at `time`.
  case schedule(function: String, time: Timestamp)
  /// A task of a queue, which is named after its function.
  case task(EnqueuedTask)
  /// A change in the Realtime Database, for every function that watches a changed node.
  case value(DatabaseChange)
}

/// A task as it was added to a queue.
package struct EnqueuedTask: Sendable, Hashable {
  /// The last part of the task's resource name, unique in its queue.
  package var id: String
  /// The name of the queue, which is also the name of its function.
  package var queue: String
  /// The body of the request to the function.
  package var body: [UInt8]
  /// The headers that the sender adds to the request, by name.
  package var headers: [String: String]
  /// The earliest time of the first attempt.
  package var scheduleTime: Timestamp
  /// The maximum duration of one attempt, in seconds.
  package var dispatchDeadline: Double
  /// The destination of the task; nil for the function of its queue.
  package var target: TaskTarget?

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

  /// The default deadline in seconds, the same as Firebase's.
  package static let dispatchDeadlineDefault = 60.0
}
