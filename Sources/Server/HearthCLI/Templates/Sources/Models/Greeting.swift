extension CallableName where Payload == GreetingQuery, Reply == Greeting {
  /// The callable that returns the greeting of the signed-in user.
  public static var greeting: Self { Self("greeting") }
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

/// A document below `greetings`, and the result of `greeting`.
public struct Greeting: Codable, Sendable, Equatable {
  /// The text of the greeting.
  public var text: String

  /// Creates a greeting with a text.
  public init(text: String) {
    self.text = text
  }
}
