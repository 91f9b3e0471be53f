import ServiceLifecycle
package import VectorIndex

/// The service that loads a catalogue's records while the other services already run.
///
/// It ends when the service group shuts down. It throws errors of the load, because an emulator
/// that silently lacks records would be worse than none.
package struct VectorLoader: Service {
  private let catalogue: VectorCatalogue

  /// Creates a loader for a catalogue whose indexes are loaded.
  package init(catalogue: VectorCatalogue) {
    self.catalogue = catalogue
  }

  /// Loads the records and then waits for the shutdown.
  package func run() async throws {
    try await catalogue.loadRecords()
    try await gracefulShutdown()
  }
}
