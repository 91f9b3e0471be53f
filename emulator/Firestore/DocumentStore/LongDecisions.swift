/// An error thrown by a policy whose decision takes longer than a brief view allows.
///
/// Nothing has been decided; the request is evaluated again.
package struct LongDecisionError: Error {
  package init() {}
}

/// The isolation of requests with slow access decisions, so that they delay only each other.
enum LongDecisions {
  /// True if the current task runs one of these requests.
  @TaskLocal static var isSeparated = false

  /// Runs a request that consults the access policy.
  ///
  /// If the policy throws `LongDecisionError`, the request runs a second time, on separate threads
  /// and with the full time limit of the policy. The second run does not start if its task was
  /// cancelled while it waited for those threads.
  static func separated<Answer: Sendable>(
    _ request: () async throws -> Answer
  ) async throws -> Answer {
    do {
      return try await request()
    } catch is LongDecisionError {
      return try await $isSeparated.withValue(true) {
        try await withTaskExecutorPreference(LongWorkExecutor.decisions) {
          // The wait may have been long because other decisions used the same threads.
          try Task.checkCancellation()
          return try await request()
        }
      }
    }
  }
}
