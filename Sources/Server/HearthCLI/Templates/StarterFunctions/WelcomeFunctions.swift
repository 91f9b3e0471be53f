import FirestoreClient
import FunctionsRuntime

/// The functions of this project; each has a name that never changes with the code.
public struct WelcomeFunctions: Sendable {
  let firestore: Firestore

  /// Functions over a database.
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
  public var welcome: OnDocumentCreated<User> {
    .init("welcome", at: "users/{userId}") { event in
      let greeting = try firestore.document("greetings/\(event.params.userId)")
      try await greeting.set(Greeting(text: "Welcome, \(event.data.name)!"))
      event.logger.info("Greeted", metadata: ["name": "\(event.data.name)"])
    }
  }

  /// Tells a signed-in user their greeting: the app calls it by its name.
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
  /// What others call them.
  public var name: String

  /// A user of this name.
  public init(name: String) {
    self.name = name
  }
}

/// A document below `greetings`, and what `greeting` answers.
public struct Greeting: Codable, Sendable, Equatable {
  /// What is said.
  public var text: String

  /// A greeting of these words.
  public init(text: String) {
    self.text = text
  }
}

/// What `greeting` is asked.
public struct GreetingQuery: Codable, Sendable {
  /// Whether the answer comes in capitals.
  public var isLoud: Bool?

  /// A question.
  public init(isLoud: Bool? = nil) {
    self.isLoud = isLoud
  }
}
