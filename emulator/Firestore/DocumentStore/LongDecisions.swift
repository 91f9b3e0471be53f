/// Thrown by a policy whose decision takes longer than a brief view allows; nothing was decided.
package struct LongDecisionError: Error {
  package init() {}
}

/// Requests whose access policy takes long, so that they hold up each other and nobody else.
enum LongDecisions {
  /// Whether the current task is one of them.
  @TaskLocal static var isOneOfThem = false

  /// Runs a request that asks the access policy.
  ///
  /// When the policy takes long, the request runs once more, on threads of its own and with all the
  /// time that the policy allows itself; not when its task was cancelled while it waited for them.
  static func separated<Answer: Sendable>(
    _ request: () async throws -> Answer
  ) async throws -> Answer {
    do {
      return try await request()
    } catch is LongDecisionError {
      return try await $isOneOfThem.withValue(true) {
        try await withTaskExecutorPreference(LongWorkExecutor.decisions) {
          // Others may have taken long meanwhile.
          try Task.checkCancellation()
          return try await request()
        }
      }
    }
  }
}
