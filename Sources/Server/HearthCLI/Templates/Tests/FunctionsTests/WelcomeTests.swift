import FunctionsTesting
import StarterModels
import Testing

@testable import StarterFunctions

@Suite("Welcome")
struct WelcomeTests {
  @Test("A new user is greeted, and can ask for the greeting")
  func greetsNewUsers() async throws {
    try await withFunctions(\.app) { environment in
      WelcomeFunctions(firestore: environment.firestore)
    } test: { suite, functions in
      try await suite.firestore.document("users/tina").set(User(name: "Tina"))
      try await suite.settle()

      let greeting = try await suite.call(functions.greeting, GreetingQuery(), as: "tina")
      #expect(greeting == Greeting(text: "Welcome, Tina!"))
      #expect(suite.runCount(of: functions.welcome) == 1)
    }
  }

  @Test("Who is not signed in has no greeting")
  func needsUser() async throws {
    try await withFunctions(\.app) { environment in
      WelcomeFunctions(firestore: environment.firestore)
    } test: { suite, functions in
      let error = await #expect(throws: CallableError.self) {
        try await suite.call(functions.greeting, GreetingQuery())
      }
      #expect(error?.code == .unauthenticated)
    }
  }
}
