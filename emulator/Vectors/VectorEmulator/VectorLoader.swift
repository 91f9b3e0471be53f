package import Logging
import ServiceLifecycle
package import VectorIndex

/// The service that loads a catalog's records while the other services already run.
///
/// It ends when the service group shuts down. It throws errors of the load, because an emulator
/// that silently lacks records would be worse than none.
package struct VectorLoader: Service {
  private let catalog: VectorCatalog
  private let logger: Logger

  /// Creates a loader for a catalog whose indexes are loaded.
  package init(catalog: VectorCatalog, logger: Logger) {
    self.catalog = catalog
    self.logger = logger
  }

  /// Loads the records and then waits for the shutdown.
  package func run() async throws {
    try await load()
    try await gracefulShutdown()
  }

  /// Loads the records, unless they are loaded already.
  package func load() async throws {
    let dropped = try await catalog.loadRecords()
    guard dropped > 0 else { return }
    logger.warning(
      "Stored vectors had no index of their dimension and were deleted",
      metadata: ["vectors": "\(dropped)"]
    )
  }
}
