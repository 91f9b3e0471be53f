public import FunctionsRuntime
import PsstBackend

extension AppFunctions {
  /// Removes an account whose sign-up was never completed by a user document.
  ///
  /// The app makes the document right after the account. It is looked for at once, after a minute,
  /// and after an hour. Only accounts with a password and a name are looked at, which is how
  /// `AuthenticationService` makes them.
  public var removeUnfinishedSignUp: OnUserCreated {
    .init("removeUnfinishedSignUp", options: .init(retry: true)) { event in
      let uid = event.user.uid
      guard event.user.displayName != nil,
        event.user.providers.contains(where: { $0.id == "password" })
      else { return }
      guard try await !services.signUps.isComplete(uid) else { return }
      switch event.attempt {
      case 1: throw EventError.retry(exactlyAfter: .seconds(60), "The sign-up is not complete yet")
      case 2:
        throw EventError.retry(exactlyAfter: .seconds(3600), "The sign-up is not complete yet")
      default: break
      }
      do {
        try await users.deleteUser(uid)
      } catch let error as AuthAdminError where error.code == "USER_NOT_FOUND" {
        return
      }
      // The document may have been made between the two; without its account it is nobody's.
      try await services.signUps.removeDocument(uid)
      event.logger.notice("An unfinished sign-up was removed", metadata: ["user": "\(uid)"])
    }
  }
}
