import Dispatch
import Synchronization

/// A checkpointer that moves the write-ahead log into the file while commits go on.
///
/// It has its own queue and connection.
final class Checkpointer: Sendable {
  private let queue = DispatchQueue(label: "hearth.sqlite.checkpoints")
  private let connection: SQLiteConnection
  private let schedule: Mutex<CheckpointSchedule>

  init(connection: SQLiteConnection, schedule: CheckpointSchedule) {
    self.connection = connection
    self.schedule = Mutex(schedule)
  }

  /// Starts a checkpoint if the log has grown enough, and calls `finish` when it has ended.
  func groupEnded(logPages: Int, finish: @escaping @Sendable (Result<Void, any Error>) -> Void) {
    guard schedule.withLock({ $0.groupEnded(logPages: logPages) }) else { return }
    queue.async { [self] in
      let result = Result { _ = try connection.checkpoint() }
      schedule.withLock { $0.checkpointEnded() }
      finish(result)
    }
  }

  /// Closes the connection after a running checkpoint has ended.
  ///
  /// Start no further checkpoints.
  func stop() async {
    await withCheckedContinuation { continuation in
      queue.async { [self] in
        connection.close()
        continuation.resume()
      }
    }
  }
}

/// The rule for when to start a checkpoint.
///
/// The first starts at a given log size. Further checkpoints start after each additional step, as
/// long as the log does not shrink.
struct CheckpointSchedule {
  let pagesMax: Int
  /// The growth that starts another checkpoint while open snapshots prevent the log's restart.
  let pagesStep: Int
  private var threshold: Int
  private var isRunning = false
  private var lastPages = 0

  init(pagesMax: Int) {
    self.pagesMax = pagesMax
    pagesStep = max(pagesMax / 4, 1)
    threshold = pagesMax
  }

  /// Returns true if a checkpoint must start, after a commit that left `logPages` pages in the log.
  mutating func groupEnded(logPages: Int) -> Bool {
    if logPages < lastPages { threshold = pagesMax }
    lastPages = logPages
    guard !isRunning, logPages >= threshold else { return false }
    isRunning = true
    return true
  }

  /// Records that the checkpoint has ended, and sets the threshold for the next.
  mutating func checkpointEnded() {
    isRunning = false
    threshold = max(lastPages, pagesMax) + pagesStep
  }
}
