/// The order of a store's commits, which changes of the index catalog follow as well.
package protocol CommitOrder: Sendable {
  /// Runs a step while no commit is between being built and being submitted to storage.
  ///
  /// The step must be short, because all commits wait for it.
  func alone<Result>(_ step: () throws -> sending Result) rethrows -> sending Result
}
