import DocumentModel
import Manifests

/// A function that processes a queue of tasks.
///
/// It also adds typed tasks to that queue.
///
/// ```swift
/// struct Backfill: Sendable {
///   var embed: OnTaskDispatched<EmbedJob> {
///     .init("embed", rateLimits: .init(concurrentDispatches: 6)) { request in
///       request.logger.info("Embedding \(request.data.messageID)")
///     }
///   }
/// }
///
/// try await backfill.embed.enqueue(EmbedJob(messageID: "m1"), after: .seconds(30))
/// ```
///
/// A failed task has three attempts unless the option `retry` sets another rule. Dates in the
/// payload are in RFC 3339 format unless the option `dates` sets another format.
public struct OnTaskDispatched<Payload: Codable & Sendable>: CloudFunction {
  /// The name of the function and of its queue.
  public let name: String
  private let rateLimits: TaskRateLimits
  private let options: FunctionOptions
  private let handler: @Sendable (TaskRequest<Payload>) async throws -> Void

  /// Creates a function that processes the queue with its name.
  public init(
    _ name: String,
    rateLimits: TaskRateLimits = TaskRateLimits(),
    options: TaskQueueOptions = TaskQueueOptions(),
    handler: @escaping @Sendable (TaskRequest<Payload>) async throws -> Void
  ) {
    self.name = name
    self.rateLimits = rateLimits
    self.options = options.values
    self.handler = handler
  }

  /// The description of the function that a `FunctionsApp` uses to host it.
  public var definition: FunctionDefinition {
    FunctionDefinition(name: name, trigger: .taskQueue(rateLimits), options: options) {
      request,
      scope in
      await TaskInvocation(scope: scope).reply(to: request, handler)
    }
  }

  /// Runs the handler immediately, without a queue, and rethrows its error.
  public func run(_ task: TaskRequest<Payload>) async throws {
    try await handler(task)
  }

  //MARK: - The queue

  /// Adds a task to the queue and returns its id.
  ///
  /// The task runs when the limits of the queue allow, but not before `delay` has passed. A task
  /// with an `id` is added only once. While the task waits, and for some time after it has run,
  /// another task with the same id throws `alreadyExists`. `dispatchDeadline` limits the duration
  /// of one attempt, from 15 seconds to 30 minutes. Throws `TaskQueueError`.
  ///
  /// Inside a function the task goes to the server that runs the function. Elsewhere it goes to the
  /// emulator in `CLOUD_TASKS_EMULATOR_HOST`, or to Cloud Tasks if that variable is not set.
  @discardableResult
  public func enqueue(
    _ payload: Payload,
    id: String? = nil,
    after delay: Duration = .zero,
    dispatchDeadline: Duration? = nil
  ) async throws -> String {
    guard delay >= .zero else {
      throw TaskQueueError(.invalidArgument, "A task cannot run \(delay) from now; wait or run it.")
    }
    return try await enqueue(payload, id, .after(delay), dispatchDeadline)
  }

  /// Adds a task that runs at a given time, or immediately if that time has passed.
  ///
  /// In all other respects it works like `enqueue(_:id:after:dispatchDeadline:)`. Throws
  /// `TaskQueueError`.
  @discardableResult
  public func enqueue(
    _ payload: Payload,
    id: String? = nil,
    at time: any PointInTime,
    dispatchDeadline: Duration? = nil
  ) async throws -> String {
    try await enqueue(payload, id, .at(time.timestamp), dispatchDeadline)
  }

  /// Removes a task that has not run yet.
  ///
  /// A task that does not exist is not an error.
  ///
  /// Throws `TaskQueueError` for an invalid id and for any other failure.
  public func delete(id: String) async throws {
    try Self.check(id)
    let queueing = TaskQueueing.here
    do {
      try await queueing.enqueuer.delete(id: id, from: queue(queueing))
    } catch let error as TaskQueueError where error.code == .notFound {
      return
    }
  }

  private func enqueue(
    _ payload: Payload,
    _ id: String?,
    _ time: OutgoingTask.Time,
    _ deadline: Duration?
  ) async throws -> String {
    if let id { try Self.check(id) }
    let allowed = FunctionLimits.attemptSeconds
    if let deadline,
      !(Duration.seconds(allowed.lowerBound)...(.seconds(allowed.upperBound))).contains(deadline)
    {
      throw TaskQueueError(
        .invalidArgument,
        "The dispatchDeadline \(deadline) is not allowed; set 15 seconds to 30 minutes."
      )
    }
    let queueing = TaskQueueing.here
    let dates = queueing.options[name]?.dates ?? options.dates
    let body: [UInt8]
    do {
      let encoder = ValueEncoder(dialect: TaskInvocation.dialect(dates))
      body = try JSONWriter.write(.map(["data": try encoder.encode(payload)]))
    } catch {
      throw TaskQueueError(.invalidArgument, "The task cannot be written as JSON: \(error).")
    }
    return try await queueing.enqueuer.enqueue(
      OutgoingTask(
        queue: queue(queueing),
        id: id,
        time: time,
        dispatchDeadline: deadline,
        body: body
      )
    )
  }

  private func queue(_ queueing: TaskQueueing) -> TaskQueueName {
    TaskQueueName(
      function: name,
      region: queueing.options[name]?.region ?? options.region ?? FunctionEndpoint.defaultRegion
    )
  }

  private static func check(_ id: String) throws(TaskQueueError) {
    let isID = id.utf8.allSatisfy {
      (65...90).contains($0) || (97...122).contains($0) || (48...57).contains($0) || $0 == 45
        || $0 == 95
    }
    let most = FunctionLimits.taskIDBytesMax
    guard isID, (1...most).contains(id.utf8.count) else {
      throw TaskQueueError(
        .invalidArgument,
        "\"\(id)\" is not a valid id for a task: use letters, digits, '-' and '_', \(most) at most."
      )
    }
  }
}
