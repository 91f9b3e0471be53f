public import FirestoreClient

/// A person, `users/{uid}`.
public struct User: StoredDocument, Hashable {
  /// What others see; empty when the document has no name that can be read.
  public var displayName: String
  /// The person's address.
  public var email: String?
  /// Trainer or client; nil for users stored before roles existed, and for an unknown role.
  public var role: Role?
  /// The fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []
  private var isRoleUnreadable = false

  /// A person.
  public init(displayName: String, email: String? = nil, role: Role? = nil) {
    self.displayName = displayName
    self.email = email
    self.role = role
  }

  /// Reads a stored user, of whom no field is necessary.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    displayName = try fields.optional(.displayName) ?? ""
    email = try fields.optional(.email)
    let before = fields.unreadable.count
    role = try fields.optional(.role)
    isRoleUnreadable = fields.unreadable.count > before
    unreadable = fields.unreadable
  }

  /// The two kinds of user; a role never changes once written.
  public enum Role: String, Codable, Sendable, Hashable {
    case trainer, client
  }

  /// The role; a user without one counts as a trainer, and one with an unknown role has none.
  public var effectiveRole: Role? { isRoleUnreadable ? nil : role ?? .trainer }

  /// Where users are stored.
  public static let collection = "users"

  private enum CodingKeys: String, CodingKey {
    case displayName, email, role
  }
}
