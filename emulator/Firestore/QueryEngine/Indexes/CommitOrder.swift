/// The order of a store's commits, which changes of the index catalogue follow, too.
package protocol CommitOrder: Sendable {
  /// Runs a step while no commit is between being built and being handed to storage.
  ///
  /// The step must be short, because all commits wait.
  func alone<Result>(_ step: () throws -> sending Result) rethrows -> sending Result
}
