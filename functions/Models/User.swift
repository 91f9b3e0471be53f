public import FirestoreClient

/// A user of the app, stored at `users/{uid}`.
public struct User: StoredDocument, Hashable {
  /// The name that others see; empty if missing or unreadable.
  public var displayName: String
  /// The user's email address.
  public var email: String?
  /// The role of the user; nil for users older than roles, and for an unknown role.
  public var role: Role?
  /// The fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []
  private var isRoleUnreadable = false

  /// Creates a user, by default without email address and role.
  public init(displayName: String, email: String? = nil, role: Role? = nil) {
    self.displayName = displayName
    self.email = email
    self.role = role
  }

  /// Decodes a stored user; all fields are optional.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    displayName = try fields.optional(.displayName) ?? ""
    email = try fields.optional(.email)
    let before = fields.unreadable.count
    role = try fields.optional(.role)
    isRoleUnreadable = fields.unreadable.count > before
    unreadable = fields.unreadable
  }

  /// The roles of users; a role never changes once written.
  public enum Role: String, Codable, Sendable, Hashable {
    case trainer, client
  }

  /// The role that applies.
  ///
  /// A user without a role counts as a trainer, and a user with an unknown role has none.
  public var effectiveRole: Role? { isRoleUnreadable ? nil : role ?? .trainer }

  /// The name of the collection of users.
  public static let collection = "users"

  private enum CodingKeys: String, CodingKey {
    case displayName, email, role
  }
}
