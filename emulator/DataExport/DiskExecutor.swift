import Dispatch

/// Runs exports and imports on a thread of their own, since they wait for the disk.
final class DiskExecutor: TaskExecutor {
  /// The process's only executor: two would just compete for the same disk.
  static let shared = DiskExecutor()

  private let queue = DispatchQueue(label: "hearth.export")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
