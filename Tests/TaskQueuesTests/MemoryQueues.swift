import DocumentModel
import Identifiers
import InvocationContext
import StatusCodes
import TaskQueueModel

/// In-memory queues whose tasks never run; tests set the time.
actor MemoryQueues: TaskQueueBackend {
  private var known: [String: TaskQueue]
  private var kept: [String: [String: QueuedTask]] = [:]
  /// The last time at which each task name was in use.
  private var used: [String: Timestamp] = [:]
  var now: Timestamp
  /// The cause of each enqueued task.
  private(set) var causes: [String?] = []

  init(_ queues: [TaskQueue], now: Timestamp) {
    known = Dictionary(uniqueKeysWithValues: queues.map { ($0.id, $0) })
    self.now = now
  }

  func advance(seconds: Int64) { now.microseconds += seconds * 1_000_000 }

  func queues() -> [TaskQueue] { known.values.sorted { $0.id < $1.id } }

  func enqueue(_ task: NewTask, in queue: String) throws -> QueuedTask {
    causes.append(EventCause.current)
    let id = task.id ?? RandomID.make()
    let name = "\(queue)/\(id)"
    if kept[queue]?[id] != nil
      || used[name].map({ now.microseconds - $0.microseconds < 3_600_000_000 }) == true
    {
      throw StatusError(.alreadyExists, "taken")
    }
    let queued = QueuedTask(id: id, task: task, createTime: now)
    kept[queue, default: [:]][id] = queued
    return queued
  }

  func task(_ id: String, in queue: String) -> QueuedTask? { kept[queue]?[id] }

  func tasks(
    in queue: String,
    after id: String?,
    limit: Int,
    withBodies: Bool
  ) -> (tasks: [QueuedTask], hasMore: Bool) {
    let rest = (kept[queue] ?? [:]).values.sorted { $0.id < $1.id }.filter { $0.id > id ?? "" }
    let tasks = rest.prefix(limit).map { task in
      var task = task
      if !withBodies { task.body = [] }
      return task
    }
    return (tasks, rest.count > limit)
  }

  /// All tasks of a queue.
  func all(in queue: String) -> [QueuedTask] {
    tasks(in: queue, after: nil, limit: .max, withBodies: true).tasks
  }

  func deleteTask(_ id: String, in queue: String) -> Bool {
    used["\(queue)/\(id)"] = now
    return kept[queue]?.removeValue(forKey: id) != nil
  }

  func runTask(_ id: String, in queue: String) -> QueuedTask? {
    guard var task = kept[queue]?[id] else { return nil }
    task.dispatchCount += 1
    let attempt = QueuedTask.Attempt(scheduleTime: task.scheduleTime, dispatchTime: now)
    task.firstAttempt = task.firstAttempt ?? attempt
    task.lastAttempt = attempt
    kept[queue]?[id] = task
    return task
  }

  func setPaused(_ isPaused: Bool, queue: String) throws -> TaskQueue {
    guard var found = known[queue] else { throw StatusError(.notFound, "gone") }
    found.isPaused = isPaused
    known[queue] = found
    return found
  }

  func purge(_ queue: String) { kept[queue] = nil }

  func taskQueueStatistics() -> [String: TaskQueueStatistics] {
    kept.mapValues {
      TaskQueueStatistics(
        tasksCount: $0.count,
        concurrentDispatchesCount: $0.values.count { $0.dispatchCount > 0 },
        executedLastMinuteCount: 0
      )
    }
  }
}
