import FunctionsRuntime
import ServiceLifecycle
import UnixSignals

/// A service that an author runs beside the functions, such as a connection pool.
struct SampleNeighbour: Service {
  struct Failure: Error, CustomStringConvertible {
    var description: String { "failed as asked" }
  }

  /// True if it fails when the process receives `SIGUSR1`.
  let fails: Bool

  func run() async throws {
    let logger = Logger(label: "neighbour")
    logger.info("Neighbour started")
    if fails {
      for await _ in await UnixSignalsSequence(trapping: .sigusr1) { throw Failure() }
    }
    try await gracefulShutdown()
    logger.info("Neighbour stopped")
  }
}
