import DequeModule
import DocumentModel
import Events
import Identifiers
import Manifests
import StatusCodes
import StorageEngine
import Synchronization
package import TaskQueueModel

/// The queues of tasks: one for each deployed function that runs tasks, under its name.
package final class TaskDispatch: TaskQueueBackend {
  private let registry: FunctionRegistry
  private let names: TaskStore
  private let store: DeliveryStore
  private let dispatcher: Dispatcher
  private let schedules: ScheduleRunner
  private let administration: DeliveryAdministration
  private let configuration: DeliveryService.Configuration
  private let now: @Sendable () -> Timestamp
  /// The times at which attempts of each queue's tasks ended, for the last minute.
  private let ended = Mutex<[String: Deque<Timestamp>]>([:])

  init(
    registry: FunctionRegistry,
    store: DeliveryStore,
    dispatcher: Dispatcher,
    schedules: ScheduleRunner,
    administration: DeliveryAdministration,
    configuration: DeliveryService.Configuration,
    now: @escaping @Sendable () -> Timestamp
  ) {
    self.registry = registry
    self.names = TaskStore(storage: store.storage)
    self.store = store
    self.dispatcher = dispatcher
    self.schedules = schedules
    self.administration = administration
    self.configuration = configuration
    self.now = now
  }

  package func queues() -> [TaskQueue] {
    (registry.current?.endpoints ?? [:]).compactMap { name, endpoint in queue(name, endpoint) }
      .sorted { $0.id < $1.id }
  }

  /// Adds a task to its queue; the task is durable on return.
  ///
  /// In addition to the errors that `TaskQueueBackend` names, it throws `RESOURCE_EXHAUSTED` if the
  /// queue has `tasksMax` tasks. It throws `INVALID_ARGUMENT` if the task is for a function that
  /// takes no requests.
  package func enqueue(_ task: NewTask, in queue: String) async throws -> QueuedTask {
    try checkQueue(queue)
    if case .function(let name, _) = task.target?.place, !registry.takesRequests(name) {
      throw StatusError.invalidArgument(
        "task.httpRequest.url names the function \(name), and no deployed function of this name "
          + "takes requests."
      )
    }
    let count = dispatcher.read { $0.backlogs[queue]?.count ?? 0 }
    guard count < configuration.tasksMax else {
      throw StatusError(
        .resourceExhausted,
        "\(count) tasks wait in the queue \(queue) already; let some run, or purge it."
      )
    }
    let time = now()
    let id = task.id ?? RandomID.make()
    let known = try await names.find(queue: queue, id: id)
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
      dispatchDeadline: task.dispatchDeadline / .seconds(1),
      target: task.target
    )
    var batch = StorageBatch()
    TaskStore.take(queue: queue, id: id, in: &batch)
    do {
      try await schedules.record(
        [.task(enqueued)],
        in: batch,
        expecting: [TaskStore.expectation(queue: queue, id: id, version: known?.version)]
      )
    } catch let error as StorageError where error.kind == .conflict {
      throw taken(id, queue)
    }
    return QueuedTask(id: id, task: task, createTime: time)
  }

  package func task(_ id: String, in queue: String) async throws -> QueuedTask? {
    guard let delivery = try await delivery(of: id, in: queue) else { return nil }
    return try await queued(delivery)
  }

  package func tasks(
    in queue: String,
    after id: String?,
    limit: Int,
    withBodies: Bool
  ) async throws -> (tasks: [QueuedTask], hasMore: Bool) {
    try checkQueue(queue)
    try await administration.waitForExpansion()
    var tasks: [QueuedTask] = []
    var bytes = 0
    // One task more than fits shows if another page follows.
    for delivery in try await names.list(queue: queue, after: id, limit: limit + 1) {
      guard tasks.count < limit, bytes < Self.pageBytesMax else {
        return (tasks, true)
      }
      guard var task = try await queued(delivery) else { continue }
      if !withBodies { task.body = [] }
      bytes += task.body.count
      for (name, value) in task.headers { bytes += name.utf8.count + value.utf8.count }
      tasks.append(task)
    }
    return (tasks, false)
  }

  package func deleteTask(_ id: String, in queue: String) async throws -> Bool {
    guard let delivery = try await delivery(of: id, in: queue) else { return false }
    try await administration.delete(delivery.id)
    return true
  }

  package func runTask(_ id: String, in queue: String) async throws -> QueuedTask? {
    guard let delivery = try await delivery(of: id, in: queue),
      let task = try await queued(delivery)
    else { return nil }
    try await administration.hasten(delivery.id)
    return task
  }

  package func purge(_ queue: String) async throws {
    try checkQueue(queue)
    try await administration.waitForExpansion()
    try await administration.deleteAll(of: queue)
  }

  package func setPaused(_ isPaused: Bool, queue: String) async throws -> TaskQueue {
    try checkQueue(queue)
    try await names.setPaused(isPaused, queue: queue)
    dispatcher.change { dispatch in
      dispatch.change(queue) { $0.isPaused = isPaused }
    }
    guard let endpoint = registry.current?.endpoints[queue],
      let found = self.queue(queue, endpoint)
    else { throw unknown(queue) }
    return found
  }

  package func taskQueueStatistics() -> [String: TaskQueueStatistics] {
    let minuteAgo = now().advanced(by: .seconds(-60))
    return Dictionary(
      uniqueKeysWithValues: queues().map { queue in
        let (count, running) = dispatcher.read { dispatch in
          let backlog = dispatch.backlogs[queue.id]
          return (backlog?.count ?? 0, backlog?.runningCount ?? 0)
        }
        let statistics = TaskQueueStatistics(
          tasksCount: count,
          concurrentDispatchesCount: running,
          executedLastMinuteCount: ended.withLock { ended in
            ended[queue.id]?.count { $0 > minuteAgo } ?? 0
          }
        )
        return (queue.id, statistics)
      }
    )
  }

  /// Counts the attempts of tasks for the statistics of the last minute.
  func noteEnded(_ deliveries: [Delivery]) {
    guard deliveries.contains(where: \.isTask) else { return }
    let time = now()
    let minuteAgo = time.advanced(by: .seconds(-60))
    ended.withLock { ended in
      for delivery in deliveries where delivery.isTask {
        ended[delivery.id.function, default: []].append(time)
      }
      for queue in ended.keys {
        while let first = ended[queue]?.first, first <= minuteAgo { ended[queue]?.removeFirst() }
        if ended[queue]?.isEmpty == true { ended[queue] = nil }
      }
    }
  }

  private func queue(_ name: String, _ endpoint: FunctionEndpoint) -> TaskQueue? {
    guard let trigger = endpoint.taskQueueTrigger else { return nil }
    return TaskQueue(
      id: name,
      locations: endpoint.regions,
      isPaused: dispatcher.read { $0.backlogs[name]?.isPaused ?? false },
      rateLimits: trigger.rateLimits ?? .init(),
      retryConfig: trigger.retryConfig ?? .init()
    )
  }

  /// Returns the delivery of an unfinished task; nil if there is none.
  private func delivery(of id: String, in queue: String) async throws -> Delivery? {
    try checkQueue(queue)
    guard case .live(let delivery)? = try await names.find(queue: queue, id: id)?.name else {
      return nil
    }
    try await administration.waitForExpansion(through: delivery.sequence)
    return try await store.delivery(delivery)
  }

  private func queued(_ delivery: Delivery) async throws -> QueuedTask? {
    guard delivery.isTask, !delivery.state.isSettled,
      let task = try await store.event(at: delivery.id.place)?.task
    else { return nil }
    let isRunning = administration.isRunning(delivery.id)
    var queued = QueuedTask(
      id: task.id,
      task: NewTask(
        id: task.id,
        body: task.body,
        headers: task.headers,
        scheduleTime: task.scheduleTime,
        dispatchDeadline: .seconds(task.dispatchDeadline),
        target: task.target
      ),
      createTime: delivery.commitTime
    )
    queued.scheduleTime = max(delivery.dueTime, task.scheduleTime)
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
    guard registry.current?.endpoints[queue]?.taskQueueTrigger == nil else { return }
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

  /// The maximum size of the bodies and headers of the tasks on one page.
  private static let pageBytesMax = 4 << 20
}
