import FunctionsRuntime

/// Task queues that record their tasks in a file.
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

  /// Records each attempt at a task and fails; there are three attempts in all.
  var failTask: OnTaskDispatched<Job> {
    .init("failTask") { task in
      output.append("failTask", task.taskName, "\(task.data.n)", "\(task.retryCount)")
      throw CallableError(.unavailable, "failTask fails")
    }
  }
}
