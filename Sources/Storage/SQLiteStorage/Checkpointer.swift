import Dispatch
import Synchronization

/// Moves the write-ahead log into the file during commits, on its own queue and connection.
final class Checkpointer: Sendable {
  private let queue = DispatchQueue(label: "hearth.sqlite.checkpoints")
  private let connection: Connection
  private let schedule: Mutex<CheckpointSchedule>

  init(connection: Connection, schedule: CheckpointSchedule) {
    self.connection = connection
    self.schedule = Mutex(schedule)
  }

  /// Starts a checkpoint when the log has grown enough; `finish` is called when it has ended.
  func groupEnded(logPages: Int, finish: @escaping @Sendable (Result<Void, any Error>) -> Void) {
    guard schedule.withLock({ $0.groupEnded(logPages: logPages) }) else { return }
    queue.async { [self] in
      let result = Result { _ = try connection.checkpoint() }
      schedule.withLock { $0.checkpointEnded() }
      finish(result)
    }
  }

  /// Closes the connection once a running checkpoint has ended; no other may be started.
  func stop() async {
    await withCheckedContinuation { continuation in
      queue.async { [self] in
        connection.close()
        continuation.resume()
      }
    }
  }
}

/// When to checkpoint: at a given log size, and at each further step while it does not shrink.
struct CheckpointSchedule {
  let pagesMax: Int
  /// The further growth that starts a checkpoint while open snapshots keep the log from restarting.
  let pagesStep: Int
  private var threshold: Int
  private var isRunning = false
  private var lastPages = 0

  init(pagesMax: Int) {
    self.pagesMax = pagesMax
    pagesStep = max(pagesMax / 4, 1)
    threshold = pagesMax
  }

  /// Whether to start a checkpoint now, after a commit that left `logPages` in the log.
  mutating func groupEnded(logPages: Int) -> Bool {
    if logPages < lastPages { threshold = pagesMax }
    lastPages = logPages
    guard !isRunning, logPages >= threshold else { return false }
    isRunning = true
    return true
  }

  /// Notes that the checkpoint has ended.
  mutating func checkpointEnded() {
    isRunning = false
    threshold = max(lastPages, pagesMax) + pagesStep
  }
}
