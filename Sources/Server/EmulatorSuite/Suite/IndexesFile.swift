import Foundation
import Logging
import QueryEngine
import ServiceLifecycle
import StatusCodes

/// The service that reads the declared indexes again whenever their file changes.
///
/// A change applies to queries after half a second. If the file is invalid, the previous indexes
/// stay, and the log says so.
struct IndexesFile: Service {
  let path: String
  let queries: QueryRunner
  let logger: Logger

  private static let interval = Duration.milliseconds(500)

  func run() async throws {
    try await cancelWhenGracefulShutdown {
      // A file that cannot be read counts as missing.
      var contents = try? Data(contentsOf: URL(filePath: path))
      if contents == nil {
        logger.warning(
          "The file of indexes is missing, so queries have the indexes of single fields only",
          metadata: ["file": "\(path)"]
        )
      } else {
        logger.notice(
          "Queries have the indexes that a file declares",
          metadata: ["file": "\(path)"]
        )
      }
      while true {
        try await Task.sleep(for: Self.interval)
        // A file that cannot be read counts as missing, and is reported below.
        let present = try? Data(contentsOf: URL(filePath: path))
        guard present != contents else { continue }
        contents = present
        do {
          queries.declare(try Self.read(path))
          logger.notice("The declared indexes have changed", metadata: ["file": "\(path)"])
        } catch let error as any StatusConvertible {
          logger.error("The former indexes stay", metadata: ["error": "\(error.statusMessage)"])
        }
      }
    }
  }

  /// Returns the indexes that a file declares; none if there is no file.
  ///
  /// Throws `INVALID_ARGUMENT` that names the file and the problem.
  static func read(_ path: String) throws -> DeclaredIndexes {
    guard FileManager.default.fileExists(atPath: path) else { return DeclaredIndexes() }
    do {
      return try DeclaredIndexes(json: try Data(contentsOf: URL(filePath: path)))
    } catch let error as StatusError {
      throw StatusError(error.statusCode, "\(path): \(error.statusMessage)")
    }
  }
}
