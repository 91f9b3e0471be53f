/// A document below `users`, which apps write; `firestore.rules` says who may.
public struct User: Codable, Sendable {
  /// The name shown to other users.
  public var name: String

  /// Creates a user with a name.
  public init(name: String) {
    self.name = name
  }
}
