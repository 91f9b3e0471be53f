import Dispatch
import Logging
import StorageEngine
import Synchronization

/// Moves the write-ahead log into the file beside the commits, on a queue and connection of its own.
final class Checkpointer: Sendable {
  private let queue = DispatchQueue(label: "hearth.sqlite.checkpoints")
  private let connection: Connection
  private let schedule = Mutex(CheckpointSchedule())
  private let logger: Logger

  init(connection: Connection, logger: Logger) {
    self.connection = connection
    self.logger = logger
  }

  /// Starts a checkpoint when the log has grown enough; `finish` is called when it has run.
  func groupEnded(logPages: Int, finish: @escaping @Sendable () -> Void) {
    guard schedule.withLock({ $0.groupEnded(logPages: logPages) }) else { return }
    queue.async { [self] in
      do {
        _ = try connection.checkpoint()
      } catch {
        // The log only grows until the next attempt; commits go on.
        logger.debug("checkpoint failed", metadata: ["error": "\(error)"])
      }
      schedule.withLock { $0.checkpointEnded() }
      finish()
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
  /// 80 MB of log: large enough that hot pages are moved once for many commits, small enough to be
  /// read in a moment after a crash.
  static let pagesMax = 20_000
  /// Open snapshots can keep the log from starting over; then this much more must come.
  static let pagesStep = 5_000

  private var threshold = Self.pagesMax
  private var isRunning = false
  private var lastPages = 0

  /// Whether to start one now, after a commit that left `logPages` in the log.
  mutating func groupEnded(logPages: Int) -> Bool {
    if logPages < lastPages { threshold = Self.pagesMax }
    lastPages = logPages
    guard !isRunning, logPages >= threshold else { return false }
    isRunning = true
    return true
  }

  /// The one that was started has ended.
  mutating func checkpointEnded() {
    isRunning = false
    threshold = max(lastPages, Self.pagesMax) + Self.pagesStep
  }
}
