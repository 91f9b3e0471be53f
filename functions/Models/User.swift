/// A person, `users/{uid}`.
public struct User: Codable, Sendable, Hashable {
  /// What others see; never blank.
  public var displayName: String
  /// The person's address.
  public var email: String?
  /// Trainer or client; nil for users stored before roles existed.
  public var role: Role?

  /// A person.
  public init(displayName: String, email: String? = nil, role: Role? = nil) {
    self.displayName = displayName
    self.email = email
    self.role = role
  }

  /// Reads a stored user; without a name in the document, the name is empty.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    displayName = try container.decodeIfPresent(String.self, forKey: .displayName) ?? ""
    email = try container.decodeIfPresent(String.self, forKey: .email)
    role = try container.decodeIfPresent(Role.self, forKey: .role)
  }

  /// The two kinds of user; a role never changes once written.
  public enum Role: String, Codable, Sendable, Hashable {
    case trainer, client
  }

  /// The role; a user without one counts as a trainer.
  public var effectiveRole: Role { role ?? .trainer }

  /// Where users are stored.
  public static let collection = "users"
}
