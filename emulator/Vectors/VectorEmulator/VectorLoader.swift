import ServiceLifecycle
package import VectorIndex

/// Loads a catalogue's records while the other services already run.
///
/// Ends when the group shuts down; throws what loading threw, because an emulator that silently
/// lacks records would be worse than none.
package struct VectorLoader: Service {
  private let catalogue: VectorCatalogue

  /// A loader of a catalogue whose indexes are loaded.
  package init(catalogue: VectorCatalogue) {
    self.catalogue = catalogue
  }

  /// Loads, then waits for the end.
  package func run() async throws {
    try await catalogue.loadRecords()
    try await gracefulShutdown()
  }
}
