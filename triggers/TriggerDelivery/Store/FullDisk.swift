import Logging
import StorageEngine

/// The handling of a full disk: wait and write again.
enum FullDisk {
  /// The wait before another attempt.
  static let wait = Duration.seconds(1)

  /// Repeats a write until there is space.
  ///
  /// Logs once that the disk is full; `complaint` says what waits.
  @discardableResult
  static func waitOut<Result>(
    _ complaint: String,
    on clock: any Clock<Duration>,
    logger: Logger,
    _ write: () async throws -> Result
  ) async throws -> Result {
    var isReported = false
    while true {
      do {
        return try await write()
      } catch let error as StorageError where error.kind == .full {
        if !isReported { logger.warning("The disk is full", metadata: ["waits": "\(complaint)"]) }
        isReported = true
        try await clock.sleep(for: wait)
      }
    }
  }
}
