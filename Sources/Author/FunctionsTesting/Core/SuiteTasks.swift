import DocumentModel
import FunctionsRuntime
import StatusCodes
import Synchronization
import TaskQueueModel
import TriggerDelivery

/// An enqueuer that puts the tasks of functions and tests into the queues of the suite.
final class SuiteTasks: TaskEnqueuer {
  /// The weak reference to the service, which holds the functions, which hold this enqueuer.
  private struct Backend {
    weak var service: DeliveryService?
  }

  private let backend = Mutex(Backend())
  private let time: VirtualTime

  init(time: VirtualTime) {
    self.time = time
  }

  func connect(to service: DeliveryService) {
    backend.withLock { $0.service = service }
  }

  func enqueue(_ task: OutgoingTask) async throws -> String {
    let scheduleTime: Timestamp? =
      switch task.time {
      case .after(let delay): delay > .zero ? time.now.advanced(by: delay) : nil
      case .at(let time): time
      }
    var new = NewTask(id: task.id, body: task.body, scheduleTime: scheduleTime)
    if let deadline = task.dispatchDeadline { new.dispatchDeadline = deadline }
    let accepted = new
    return try await asking { service in
      if let scheduleTime { try NewTask.check(scheduleTime: scheduleTime, now: time.now) }
      return try await service.tasks.enqueue(accepted, in: task.queue.function).id
    }
  }

  func delete(id: String, from queue: TaskQueueName) async throws {
    let wasThere = try await asking { try await $0.tasks.deleteTask(id, in: queue.function) }
    guard wasThere else {
      throw TaskQueueError(.notFound, "The queue \(queue.function) has no task \(id).")
    }
  }

  private func asking<Answer>(
    _ question: (DeliveryService) async throws -> Answer
  ) async throws -> Answer {
    guard let service = backend.withLock({ $0.service }) else {
      throw TaskQueueError(.unavailable, "The suite of this queue has ended.")
    }
    do {
      return try await question(service)
    } catch let error as any StatusConvertible {
      throw TaskQueueError(error.statusCode, error.statusMessage)
    }
  }
}
