public import FirestoreClient

/// A user of the app, stored at `users/{uid}`.
public struct User: StoredDocument, Hashable, Identifiable {
  /// The user's uid, which is also the document's id; empty if missing.
  public var id: String
  /// A copy of `id`; nil if missing.
  public var uid: String?
  /// The name that others see; empty if missing or unreadable.
  public var displayName: String
  /// The user's email address.
  public var email: String?
  /// The role as it is stored; nil for users older than roles, and for an unknown role.
  public private(set) var storedRole: UserRole?
  /// The address of the user's picture.
  public var photoURL: String?
  /// The time of the sign-up.
  public var createdAt: Timestamp?
  /// The time of the last change.
  public var updatedAt: Timestamp?
  /// The token of the user's device for push notifications.
  public var fcmToken: String?
  /// The uid of the trainer with whom the user has an active connection; set by the server.
  public var personalTrainerId: String?
  /// The kinds of notifications that the user has switched on or off.
  public var notificationSettings: NotificationSettings?
  /// The fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []
  private var isRoleUnreadable = false

  /// Creates a user, by default without email address, role and picture.
  public init(
    id: String = "",
    displayName: String,
    email: String? = nil,
    role: UserRole? = nil,
    photoURL: String? = nil,
    createdAt: Timestamp? = nil
  ) {
    self.id = id
    uid = id.isEmpty ? nil : id
    self.displayName = displayName
    self.email = email
    storedRole = role
    self.photoURL = photoURL
    self.createdAt = createdAt
    updatedAt = createdAt
  }

  /// Decodes a stored user; all fields are optional.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    uid = try fields.optional(.uid)
    id = try fields.optional(.id) ?? uid ?? ""
    displayName = try fields.optional(.displayName) ?? ""
    email = try fields.optional(.email)
    photoURL = try fields.optional(.photoURL)
    createdAt = try fields.optional(.createdAt)
    updatedAt = try fields.optional(.updatedAt)
    fcmToken = try fields.optional(.fcmToken)
    personalTrainerId = try fields.optional(.personalTrainerId)
    notificationSettings = try fields.optional(.notificationSettings)
    let before = fields.unreadable.count
    storedRole = try fields.optional(.storedRole)
    isRoleUnreadable = fields.unreadable.count > before
    unreadable = fields.unreadable
  }

  /// The role for the screen; a user without a readable role is shown as a trainer.
  public var role: UserRole { storedRole ?? .trainer }

  /// The role that decides what the user may do.
  ///
  /// A user without a role counts as a trainer, and a user with an unknown role has none.
  public var effectiveRole: UserRole? { isRoleUnreadable ? nil : role }

  /// The name of the collection of users.
  public static let collection = "users"

  private enum CodingKeys: String, CodingKey {
    case id, uid, displayName, email, photoURL, createdAt, updatedAt, fcmToken
    case personalTrainerId, notificationSettings
    case storedRole = "role"
  }
}

/// The roles of users; a role never changes once written.
public enum UserRole: String, Codable, Sendable, Hashable, CaseIterable {
  case trainer, client
}
