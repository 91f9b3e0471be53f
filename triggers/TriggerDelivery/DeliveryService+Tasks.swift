import DequeModule
import DocumentModel
import Events
package import Invocation
import RuntimeSupport
import StorageEngine

/// Queues of tasks: one for each deployed function that runs tasks, under its name.
extension DeliveryService: TaskQueueBackend {
  package func queues() -> [TaskQueue] {
    (functions ?? [:]).compactMap { name, endpoint in queue(name, endpoint) }
      .sorted { $0.id < $1.id }
  }

  /// Puts a task into its queue; it is durable on return.
  ///
  /// Throws `RESOURCE_EXHAUSTED` past `tasksMax`, besides the errors of the contract.
  package func enqueue(_ task: NewTask, in queue: String) async throws -> QueuedTask {
    try checkQueue(queue)
    guard schedule.taskCount < configuration.tasksMax else {
      throw StatusError(
        .resourceExhausted,
        "\(schedule.taskCount) tasks wait already; let some run or purge their queue."
      )
    }
    let time = now()
    let id = task.id ?? RandomID.make()
    let known = try await tasks.find(queue: queue, id: id)
    switch known?.name {
    case .live: throw taken(id, queue)
    case .used(let end) where time.duration(since: end) < configuration.taskNameKept:
      throw taken(id, queue)
    case .used, nil: break
    }
    let enqueued = EnqueuedTask(
      id: id,
      queue: queue,
      body: task.body,
      headers: task.headers,
      scheduleTime: task.scheduleTime ?? time,
      dispatchDeadline: task.dispatchDeadline / .seconds(1)
    )
    var batch = StorageBatch()
    TaskStore.take(queue: queue, id: id, in: &batch)
    do {
      try await record(
        [.task(enqueued)],
        in: &batch,
        expecting: [TaskStore.expectation(queue: queue, id: id, version: known?.version)]
      )
    } catch let error as StorageError where error.kind == .conflict {
      throw taken(id, queue)
    }
    return QueuedTask(id: id, task: task, createTime: time)
  }

  package func task(_ id: String, in queue: String) async throws -> QueuedTask? {
    try await delivery(of: id, in: queue).flatMap { queued($0) }
  }

  package func tasks(
    in queue: String,
    after id: String?,
    limit: Int
  ) async throws -> [QueuedTask] {
    try checkQueue(queue)
    try await waitForExpansion(through: try await lastEvent())
    return try await tasks.list(queue: queue, after: id, limit: limit).compactMap { queued($0) }
  }

  package func deleteTask(_ id: String, in queue: String) async throws -> Bool {
    guard let delivery = try await delivery(of: id, in: queue) else { return false }
    try await discard(delivery.id)
    return true
  }

  package func runTask(_ id: String, in queue: String) async throws -> QueuedTask? {
    guard let delivery = try await delivery(of: id, in: queue) else { return nil }
    if schedule.hasten(delivery.id, now: now()) {
      forced.insert(delivery.id)
      wakeup.yield()
    }
    return queued(delivery)
  }

  package func purge(_ queue: String) async throws {
    try checkQueue(queue)
    try await waitForExpansion(through: try await lastEvent())
    for id in schedule.ids(of: queue) where !schedule.isRunning(id) { try await discard(id) }
  }

  package func setPaused(_ isPaused: Bool, queue: String) async throws -> TaskQueue {
    try checkQueue(queue)
    var batch = StorageBatch()
    if isPaused {
      batch.put(TaskStore.paused, Array(queue.utf8), [])
    } else {
      batch.delete(TaskStore.paused, Array(queue.utf8))
    }
    try await storage.commit(batch)
    schedule.setPaused(isPaused, function: queue)
    wakeup.yield()
    resumeIdleWaiters()
    guard let found = functions?[queue].flatMap({ self.queue(queue, $0) }) else {
      throw unknown(queue)
    }
    return found
  }

  package func taskQueueStatistics() -> [String: TaskQueueStatistics] {
    let running = schedule.runningIDs
    let minuteAgo = now().advanced(by: .seconds(-60))
    return Dictionary(
      uniqueKeysWithValues: queues().map { queue in
        let statistics = TaskQueueStatistics(
          tasksCount: schedule.count(of: queue.id),
          concurrentDispatchesCount: running.count { $0.function == queue.id },
          executedLastMinuteCount: tasksEnded[queue.id]?.count { $0 > minuteAgo } ?? 0
        )
        return (queue.id, statistics)
      }
    )
  }

  /// Counts a try of a task for the statistics of the last minute.
  func noteTaskEnded(_ queue: String) {
    let time = now()
    let minuteAgo = time.advanced(by: .seconds(-60))
    while let first = tasksEnded[queue]?.first, first <= minuteAgo {
      _ = tasksEnded[queue]?.popFirst()
    }
    tasksEnded[queue, default: []].append(time)
  }

  private func queue(_ name: String, _ endpoint: FunctionEndpoint) -> TaskQueue? {
    guard let trigger = endpoint.taskQueueTrigger else { return nil }
    return TaskQueue(
      id: name,
      locations: endpoint.regions,
      isPaused: schedule.isPaused(name),
      rateLimits: trigger.rateLimits ?? .init(),
      retryConfig: trigger.retryConfig ?? .init()
    )
  }

  /// The delivery of a task that has not ended; nil until the task's event is expanded.
  private func delivery(of id: String, in queue: String) async throws -> Delivery? {
    try checkQueue(queue)
    guard case .live(let delivery)? = try await tasks.find(queue: queue, id: id)?.name else {
      return nil
    }
    try await waitForExpansion(through: delivery.sequence)
    return try await store.delivery(delivery)
  }

  private func queued(_ delivery: Delivery) -> QueuedTask? {
    guard let task = delivery.task, !delivery.state.isSettled else { return nil }
    let isRunning = schedule.isRunning(delivery.id)
    var queued = QueuedTask(
      id: task.id,
      task: NewTask(
        id: task.id,
        body: task.body,
        headers: task.headers,
        scheduleTime: task.scheduleTime,
        dispatchDeadline: .seconds(task.dispatchDeadline)
      ),
      createTime: delivery.commitTime
    )
    queued.scheduleTime = delivery.dueTime
    queued.dispatchCount = delivery.attempts + (isRunning ? 1 : 0)
    queued.responseCount = delivery.attempts
    if let first = delivery.firstAttemptTime {
      queued.firstAttempt = .init(scheduleTime: task.scheduleTime, dispatchTime: first)
      queued.lastAttempt = .init(
        scheduleTime: delivery.dueTime,
        dispatchTime: nil,
        code: isRunning ? nil : .unknown
      )
    }
    return queued
  }

  private func checkQueue(_ queue: String) throws {
    guard functions?[queue]?.taskQueueTrigger == nil else { return }
    throw unknown(queue)
  }

  private func unknown(_ queue: String) -> StatusError {
    let names = queues().map(\.id).joined(separator: ", ")
    return StatusError(
      .notFound,
      "There is no queue \(queue). A queue has the name of its function; there are: "
        + (names.isEmpty ? "none" : names) + "."
    )
  }

  private func taken(_ id: String, _ queue: String) -> StatusError {
    StatusError(
      .alreadyExists,
      "The queue \(queue) has, or had within the hour, a task \(id); use another name."
    )
  }
}
