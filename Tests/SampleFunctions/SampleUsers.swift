import FunctionsRuntime

/// Functions on the lives of users, and functions that decide on them.
struct SampleUsers: Sendable {
  let output: SampleOutput

  @FunctionsBuilder var functions: [FunctionDefinition] {
    recordCreated
    recordDeleted
    decideOnCreation
    decideOnSignIn
  }

  var recordCreated: OnUserCreated {
    .init("recordCreated") { event in
      output.append("recordCreated", event.user.uid, event.user.email ?? "-")
    }
  }

  var recordDeleted: OnUserDeleted {
    .init("recordDeleted") { event in
      output.append("recordDeleted", event.user.uid, event.user.email ?? "-")
    }
  }

  /// Refuses addresses that begin with `refused`, crashes for `crash`, hangs for `hang`, and gives
  /// everybody else a role.
  var decideOnCreation: BeforeUserCreated {
    .init("decideOnCreation") { event in
      output.append("decideOnCreation", event.user.email ?? "-", event.method ?? "-")
      let email = event.user.email ?? ""
      if email.hasPrefix("refused") {
        throw CallableError(.permissionDenied, "This address may not sign up.")
      }
      if email.hasPrefix("crash") { fatalError("crashed as asked") }
      if email.hasPrefix("hang") { try await Task.sleep(for: .seconds(3600)) }
      return UserChanges(displayName: "Checked", customClaims: ["role": .string("client")])
    }
  }

  /// Adds the method of the sign-in to the tokens of the session.
  var decideOnSignIn: BeforeUserSignedIn {
    .init("decideOnSignIn") { event in
      if event.user.displayName == "Banned" {
        throw CallableError(.unauthenticated, "You are banned.")
      }
      return UserChanges(sessionClaims: ["method": .string(event.method ?? "-")])
    }
  }
}
