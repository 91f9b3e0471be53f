import Dispatch

/// An executor that runs exports and imports on threads of their own.
///
/// They wait for the disk and compute for long, and would block other tasks.
final class DiskExecutor: TaskExecutor {
  /// The only executor of the process.
  ///
  /// Two executors would only compete for the same disk.
  static let shared = DiskExecutor()

  private let queue = DispatchQueue(label: "hearth.export", attributes: .concurrent)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
