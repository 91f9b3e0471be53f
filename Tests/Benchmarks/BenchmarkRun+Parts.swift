/// What a run does when a part of it fails.
extension BenchmarkRun {
  /// Runs a part; what fails in it becomes a line, and the run goes on.
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
      // A signal stops all parts, and each fails for that reason.
      try Task.checkCancellation()
      figures.recordMissing(name, of: subject, because: error)
    }
  }

  /// Runs a part of Hearth's own when one of its scenarios is asked for.
  func part(_ any: Scenario..., body: () async throws -> Void) async throws {
    let asked = any.filter(scenarios.contains)
    guard !asked.isEmpty else { return }
    try await part(asked.map(\.rawValue).joined(separator: ", "), body)
  }
}
