import ServiceLifecycle
package import VectorIndex

/// The service that loads a catalog's records while the other services already run.
///
/// It ends when the service group shuts down. It throws errors of the load, because an emulator
/// that silently lacks records would be worse than none.
package struct VectorLoader: Service {
  private let catalog: VectorCatalog

  /// Creates a loader for a catalog whose indexes are loaded.
  package init(catalog: VectorCatalog) {
    self.catalog = catalog
  }

  /// Loads the records and then waits for the shutdown.
  package func run() async throws {
    try await catalog.loadRecords()
    try await gracefulShutdown()
  }
}
