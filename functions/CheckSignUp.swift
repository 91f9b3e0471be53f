public import FunctionsRuntime
import PsstServices

extension AppFunctions {
  /// Checks the name of a new user before the account exists, and removes space around it.
  ///
  /// Sign-ups without a name are left alone: the rules check the name in the user document.
  public var checkSignUp: BeforeUserCreated {
    .init("checkSignUp") { event in
      guard let given = event.user.displayName else { return nil }
      do {
        let name = try AuthenticationService.checkedName(given)
        return name == given ? nil : UserChanges(displayName: name)
      } catch let error as AuthenticationError {
        throw CallableError(.invalidArgument, error.errorDescription ?? "\(error)")
      }
    }
  }
}
