import Logging
import StorageEngine

/// What is done while the disk is full: wait and write again.
enum FullDisk {
  /// The wait before another try.
  static let wait = Duration.seconds(1)

  /// Repeats a write until there is room; logs once that `complaint` waits.
  static func waitOut<Result>(
    _ complaint: String,
    on clock: any Clock<Duration>,
    logger: Logger,
    _ write: () async throws -> Result
  ) async throws -> Result {
    var isTold = false
    while true {
      do {
        return try await write()
      } catch let error as StorageError where error.kind == .full {
        if !isTold { logger.warning("\(complaint): the disk is full") }
        isTold = true
        try await clock.sleep(for: wait)
      }
    }
  }
}
