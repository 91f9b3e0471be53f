public import FunctionsRuntime
import PsstBackend

extension AppFunctions {
  /// Removes accounts whose sign-up in the app was not completed by a user document within an hour.
  ///
  /// Only sign-ups that ``checkSignUp`` has marked are looked at, and none whose account has custom
  /// claims, which an administrator has given. A schedule does this because Cloud Run gets no
  /// events of created users.
  public var removeUnfinishedSignUp: OnSchedule {
    .init(
      "removeUnfinishedSignUp",
      schedule: "*/15 * * * *",
      options: .init(retry: true)
    ) { event in
      var failures = 0
      for uid in try await services.signUps.due(at: event.scheduleTime) {
        do {
          if try await !services.signUps.isComplete(uid) {
            try await removeAccount(uid, event.logger)
          }
          try await services.signUps.end(uid)
        } catch let error as AuthAdminError {
          // One account must not keep the others.
          failures += 1
          event.logger.error(
            "A sign-up cannot be looked at",
            metadata: ["user": "\(uid)", "reason": "\(error)"]
          )
        }
      }
      if failures > 0 { throw EventError.retry(after: .zero, "\(failures) sign-ups failed") }
    }
  }

  private func removeAccount(_ uid: String, _ logger: Logger) async throws {
    guard let account = try await users.user(uid), account.customClaims.isEmpty else { return }
    do {
      try await users.deleteUser(uid)
    } catch let error as AuthAdminError where error.code == "USER_NOT_FOUND" {
      return
    }
    // The document may have been made between the two; without its account it is nobody's.
    try await services.signUps.removeDocument(uid)
    logger.notice("An unfinished sign-up was removed", metadata: ["user": "\(uid)"])
  }
}
