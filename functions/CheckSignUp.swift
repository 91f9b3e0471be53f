import Foundation
public import FunctionsRuntime

extension MessageFunctions {
  /// Checks the name of a new user before the account exists, and removes space around it.
  ///
  /// Sign-ups without a name are left alone: the rules check the name in the user document.
  public var checkSignUp: BeforeUserCreated {
    .init("checkSignUp") { event in
      guard let given = event.user.displayName else { return nil }
      let name = given.trimmingCharacters(in: .whitespacesAndNewlines)
      guard !name.isEmpty else {
        throw CallableError(.invalidArgument, "Display name cannot be empty")
      }
      guard name.count <= 100 else {
        throw CallableError(.invalidArgument, "Display name must have at most 100 characters")
      }
      return name == given ? nil : UserChanges(displayName: name)
    }
  }
}
