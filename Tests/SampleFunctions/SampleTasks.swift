import FunctionsRuntime

/// Task queues that tell a file what they were given.
struct SampleTasks: Sendable {
  let output: SampleOutput

  struct Job: Codable, Sendable {
    var n: Int
  }

  /// Records each task.
  var countTask: OnTaskDispatched<Job> {
    .init("countTask") { task in
      output.append("countTask", task.taskName, "\(task.data.n)", "\(task.retryCount)")
    }
  }

  /// Records each try of a task and fails; three tries in all.
  var failTask: OnTaskDispatched<Job> {
    .init("failTask") { task in
      output.append("failTask", task.taskName, "\(task.data.n)", "\(task.retryCount)")
      throw CallableError(.unavailable, "failTask fails")
    }
  }
}
