import FunctionsRuntime
import ServiceLifecycle

/// What an author runs beside their functions, such as a connection pool.
struct SampleNeighbour: Service {
  struct Failure: Error, CustomStringConvertible {
    var description: String { "failed as asked" }
  }

  let fails: Bool

  func run() async throws {
    let logger = Logger(label: "neighbour")
    logger.info("Neighbour started")
    if fails { throw Failure() }
    try await gracefulShutdown()
    logger.info("Neighbour stopped")
  }
}
