import Dispatch
import Synchronization

/// Moves the write-ahead log into the file beside the commits, on a queue and connection of its own.
final class Checkpointer: Sendable {
  private let queue = DispatchQueue(label: "hearth.sqlite.checkpoints")
  private let connection: Connection
  private let schedule: Mutex<CheckpointSchedule>

  init(connection: Connection, schedule: CheckpointSchedule) {
    self.connection = connection
    self.schedule = Mutex(schedule)
  }

  /// Starts a checkpoint when the log has grown enough; `finish` is called when it has run.
  func groupEnded(logPages: Int, finish: @escaping @Sendable (Result<Void, any Error>) -> Void) {
    guard schedule.withLock({ $0.groupEnded(logPages: logPages) }) else { return }
    queue.async { [self] in
      let result = Result { _ = try connection.checkpoint() }
      schedule.withLock { $0.checkpointEnded() }
      finish(result)
    }
  }

  /// Closes the connection after the checkpoint that may run; none may be started any more.
  func stop() async {
    await withCheckedContinuation { continuation in
      queue.async { [self] in
        connection.close()
        continuation.resume()
      }
    }
  }
}

/// When to checkpoint: at a size of the log, and while it does not shrink at each further step.
struct CheckpointSchedule {
  let pagesMax: Int
  /// Open snapshots can keep the log from starting over; then this much more must come.
  let pagesStep: Int
  private var threshold: Int
  private var isRunning = false
  private var lastPages = 0

  init(pagesMax: Int) {
    self.pagesMax = pagesMax
    pagesStep = max(pagesMax / 4, 1)
    threshold = pagesMax
  }

  /// Whether to start one now, after a commit that left `logPages` in the log.
  mutating func groupEnded(logPages: Int) -> Bool {
    if logPages < lastPages { threshold = pagesMax }
    lastPages = logPages
    guard !isRunning, logPages >= threshold else { return false }
    isRunning = true
    return true
  }

  /// The one that was started has ended.
  mutating func checkpointEnded() {
    isRunning = false
    threshold = max(lastPages, pagesMax) + pagesStep
  }
}
