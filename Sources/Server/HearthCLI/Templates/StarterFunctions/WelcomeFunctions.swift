import FirestoreClient
import FunctionsRuntime

/// The functions of this project; their names stay the same when the code changes.
public struct WelcomeFunctions: Sendable {
  let firestore: Firestore

  /// Creates the functions with access to a database.
  public init(firestore: Firestore) {
    self.firestore = firestore
  }

  /// All functions to deploy.
  public var app: FunctionsApp {
    FunctionsApp {
      welcome
      greeting
    }
  }

  /// Greets each new user; runs when a document below `users` is created.
  public var welcome: OnDocumentCreated<User> {
    .init("welcome", at: "users/{userId}") { event in
      let greeting = try firestore.document("greetings/\(event.params.userId)")
      try await greeting.set(Greeting(text: "Welcome, \(event.data.name)!"))
      event.logger.info("Greeted", metadata: ["name": "\(event.data.name)"])
    }
  }

  /// Returns the greeting of a signed-in user; the app calls this function by its name.
  public var greeting: OnCall<GreetingQuery, Greeting> {
    .init("greeting") { request in
      let user = try request.requireUser()
      let found = try await firestore.document("greetings/\(user)").get()
      guard found.exists else { throw CallableError(.notFound, "\(user) has no greeting yet.") }
      var greeting: Greeting = try found.data()
      if request.data.isLoud == true { greeting.text = greeting.text.uppercased() }
      return greeting
    }
  }
}

/// A document below `users`.
public struct User: Codable, Sendable {
  /// The name shown to other users.
  public var name: String

  /// Creates a user with a name.
  public init(name: String) {
    self.name = name
  }
}

/// A document below `greetings`, and the result of `greeting`.
public struct Greeting: Codable, Sendable, Equatable {
  /// The text of the greeting.
  public var text: String

  /// Creates a greeting with a text.
  public init(text: String) {
    self.text = text
  }
}

/// The request data of `greeting`.
public struct GreetingQuery: Codable, Sendable {
  /// True if the greeting should be returned in capital letters.
  public var isLoud: Bool?

  /// Creates the request data.
  public init(isLoud: Bool? = nil) {
    self.isLoud = isLoud
  }
}
