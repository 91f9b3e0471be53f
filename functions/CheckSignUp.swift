public import FunctionsRuntime
import PsstBackend
import PsstServices

extension AppFunctions {
  /// Checks the name of a new user before the account exists, and removes space around it.
  ///
  /// Sign-ups without a name are left alone: the rules check the name in the user document. A
  /// sign-up with a password and a name is how `AuthenticationService` makes accounts. It is
  /// marked, so that `removeUnfinishedSignUp` removes such accounts only: Auth does not ask this
  /// function about accounts that the Admin SDK makes or imports, nor about anonymous ones.
  public var checkSignUp: BeforeUserCreated {
    .init("checkSignUp") { event in
      guard let given = event.user.displayName else { return nil }
      do {
        let name = try AuthenticationService.checkedName(given)
        if event.method == "password" { try await services.signUps.begin(event.user.uid) }
        return name == given ? nil : UserChanges(displayName: name)
      } catch let error as AuthenticationError {
        throw CallableError(.invalidArgument, error.errorDescription ?? "\(error)")
      }
    }
  }
}
