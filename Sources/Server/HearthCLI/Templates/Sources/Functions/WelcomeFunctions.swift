import FirestoreClient
import FunctionsRuntime
import StarterModels

/// The functions of this project; their names stay the same when the code changes.
package struct WelcomeFunctions: Sendable {
  let firestore: Firestore

  /// Creates the functions with access to a database.
  package init(firestore: Firestore) {
    self.firestore = firestore
  }

  /// All functions to deploy.
  package var app: FunctionsApp {
    FunctionsApp {
      welcome
      greeting
    }
  }

  /// Greets each new user; runs when a document below `users` is created.
  var welcome: OnDocumentCreated<User> {
    .init("welcome", at: "users/{userId}") { event in
      let greeting = try firestore.document("greetings/\(event.params.userId)")
      try await greeting.set(Greeting(text: "Welcome, \(event.data.name)!"))
      event.logger.info("Greeted", metadata: ["name": "\(event.data.name)"])
    }
  }

  /// Returns the greeting of a signed-in user; the app calls this function by its name.
  var greeting: OnCall<GreetingQuery, Greeting> {
    .init(CallableName.greeting.name) { request in
      let user = try request.requireUser()
      let found = try await firestore.document("greetings/\(user)").get()
      guard found.exists else { throw CallableError(.notFound, "\(user) has no greeting yet.") }
      var greeting: Greeting = try found.data()
      if request.data.isLoud == true { greeting.text = greeting.text.uppercased() }
      return greeting
    }
  }
}
