import DocumentModel
import Invocation
import RuntimeSupport

/// Declares a function that works through a queue of tasks, and the typed way to fill that queue.
///
/// ```swift
/// struct Backfill: Sendable {
///   var embed: TaskFunction<EmbedJob> {
///     onTaskDispatched("embed", EmbedJob.self, rateLimits: .init(concurrentDispatches: 6)) {
///       request in
///       request.logger.info("Embedding \(request.data.messageID)")
///     }
///   }
/// }
///
/// try await backfill.embed.enqueue(EmbedJob(messageID: "m1"), after: .seconds(30))
/// ```
///
/// A task that fails is tried three times unless `retry`, which stands in for the option of that
/// name, says otherwise. Dates in the payload are RFC 3339 unless the option `dates` says otherwise.
public func onTaskDispatched<Payload: Codable & Sendable>(
  _ name: String,
  _ payload: Payload.Type,
  retry: RetryPolicy? = nil,
  rateLimits: TaskRateLimits = TaskRateLimits(),
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (TaskRequest<Payload>) async throws -> Void
) -> TaskFunction<Payload> {
  var options = options
  options.retry = retry ?? options.retry
  return TaskFunction(name: name, rateLimits: rateLimits, options: options, handler: handler)
}

/// A function that works through a queue of tasks; made by `onTaskDispatched`.
public struct TaskFunction<Payload: Codable & Sendable>: CloudFunction {
  /// The name of the function and of its queue.
  public let name: String
  let rateLimits: TaskRateLimits
  let options: FunctionOptions
  let handler: @Sendable (TaskRequest<Payload>) async throws -> Void

  /// What a `FunctionsApp` needs to know in order to host the function.
  public var definition: FunctionDefinition {
    FunctionDefinition(name: name, trigger: .taskQueue(rateLimits), options: options) {
      request,
      scope in
      await TaskExchange(scope: scope).reply(to: request, handler)
    }
  }

  /// Runs the handler at once, without a queue.
  public func callAsFunction(_ input: TaskRequest<Payload>) async throws {
    try await handler(input)
  }

  // MARK: - The queue

  /// Adds a task, to run as soon as the queue's limits allow but not before `delay` has passed.
  ///
  /// A task with an `id` is added once: while it waits, and for some time after, another with the
  /// same id throws `alreadyExists`. `dispatchDeadline` bounds one try, 15 seconds to 30 minutes.
  /// Gives back the task's id. Throws `TaskQueueError`.
  ///
  /// Within a function the task goes to the server that runs it. Elsewhere
  /// `CLOUD_TASKS_EMULATOR_HOST` says where, and without it the task goes to Cloud Tasks.
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

  /// Adds a task to run at a time, or at once when that is past; see the other.
  @discardableResult
  public func enqueue(
    _ payload: Payload,
    id: String? = nil,
    at time: Timestamp,
    dispatchDeadline: Duration? = nil
  ) async throws -> String {
    try await enqueue(payload, id, .at(time), dispatchDeadline)
  }

  /// Removes a task that has not run yet; one that is not there is no error.
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
    if let deadline, !(Duration.seconds(15)...Duration.seconds(1800)).contains(deadline) {
      throw TaskQueueError(
        .invalidArgument,
        "The dispatchDeadline \(deadline) is not allowed; set 15 seconds to 30 minutes."
      )
    }
    let queueing = TaskQueueing.here
    let dates = queueing.options[name]?.dates ?? options.dates
    let body: [UInt8]
    do {
      let encoder = ValueEncoder(dialect: TaskExchange.dialect(dates))
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
    guard isID, (1...500).contains(id.utf8.count) else {
      throw TaskQueueError(
        .invalidArgument,
        "\"\(id)\" is no id for a task: use letters, digits, '-' and '_', 500 at most."
      )
    }
  }
}
