/// The sources that `hearth init` writes.
///
/// They are `Tests/StarterFunctions`, `Tests/StarterWorker` and `Tests/StarterFunctionsTests`,
/// compiled and tested there; a test compares the two.
enum StarterSources {
  static let functions = #"""
    import FirestoreClient
    import FunctionsRuntime

    /// The functions of this project; each has a name that never changes with the code.
    public struct WelcomeFunctions: Sendable {
      let firestore: Firestore

      public init(firestore: Firestore) {
        self.firestore = firestore
      }

      /// What is deployed.
      public var app: FunctionsApp {
        FunctionsApp {
          welcome
          greeting
        }
      }

      /// Greets each new user: runs when a document below `users` is created.
      var welcome: some CloudFunction<DocumentEvent<User>, Void> {
        onDocumentCreated("welcome", at: "users/{userId}", as: User.self) { event in
          let greeting = try firestore.document("greetings/\(event.params.userId)")
          try await greeting.set(Greeting(text: "Welcome, \(event.data.name)!"))
          event.logger.info("Greeted", metadata: ["name": "\(event.data.name)"])
        }
      }

      /// Tells a signed-in user their greeting: the app calls it by its name.
      var greeting: some CloudFunction<CallableRequest<GreetingQuery>, Greeting> {
        onCall("greeting", GreetingQuery.self) { request in
          let user = try request.requireUser()
          let found = try await firestore.document("greetings/\(user)").get()
          guard found.exists else { throw CallableError(.notFound, "\(user) has no greeting yet.") }
          let greeting: Greeting = try found.data()
          return request.data.isLoud == true ? Greeting(text: greeting.text.uppercased()) : greeting
        }
      }
    }

    /// A document below `users`.
    public struct User: Codable, Sendable {
      public var name: String

      public init(name: String) {
        self.name = name
      }
    }

    /// A document below `greetings`, and what `greeting` answers.
    public struct Greeting: Codable, Sendable, Equatable {
      public var text: String

      public init(text: String) {
        self.text = text
      }
    }

    /// What `greeting` is asked.
    public struct GreetingQuery: Codable, Sendable {
      public var isLoud: Bool?

      public init(isLoud: Bool? = nil) {
        self.isLoud = isLoud
      }
    }

    """#

  static let worker = #"""
    import FirestoreClient
    import Foundation
    import FunctionsRuntime
    import StarterFunctions

    // The program that runs the functions, here and in production.
    let firestore = Firestore(environment: ProcessInfo.processInfo.environment)
    try await WelcomeFunctions(firestore: firestore).app.run()

    """#

  static let tests = #"""
    import FunctionsTesting
    import StarterFunctions
    import Testing

    @Suite("Welcome")
    struct WelcomeTests {
      @Test("A new user is greeted, and can ask for the greeting")
      func greetsNewUsers() async throws {
        try await withFunctions { world in
          WelcomeFunctions(firestore: world.firestore).app
        } test: { suite in
          try await suite.firestore.document("users/tina").set(User(name: "Tina"))
          try await suite.settle()

          let greeting: Greeting = try await suite.call("greeting", GreetingQuery(), as: "tina")
          #expect(greeting == Greeting(text: "Welcome, Tina!"))
          #expect(suite.calls(of: "welcome") == 1)
        }
      }

      @Test("Who is not signed in has no greeting")
      func needsUser() async throws {
        try await withFunctions { world in
          WelcomeFunctions(firestore: world.firestore).app
        } test: { suite in
          let error = await #expect(throws: CallableError.self) {
            try await suite.call("greeting", GreetingQuery())
          }
          #expect(error?.code == .unauthenticated)
        }
      }
    }

    """#
}
