/// Error handling for the parts of a run.
extension BenchmarkRun {
  /// Runs a part; if it fails, prints a line and lets the run go on.
  ///
  /// Throws only when the whole run is stopped.
  func part(
    _ name: String,
    of subject: Subject = .hearth,
    _ body: () async throws -> Void
  ) async throws {
    do {
      try await body()
    } catch {
      // A signal cancels all parts, and each then fails for that reason.
      try Task.checkCancellation()
      figures.recordMissing(name, of: subject, because: error)
    }
  }

  /// Runs a part that only Hearth has, if any of its scenarios is selected.
  func part(_ any: Scenario..., body: () async throws -> Void) async throws {
    let asked = any.filter(scenarios.contains)
    guard !asked.isEmpty else { return }
    try await part(asked.map(\.rawValue).joined(separator: ", "), body)
  }
}
