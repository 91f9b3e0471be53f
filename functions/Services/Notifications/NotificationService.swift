public import FirestoreClient
public import PsstModels

/// The signed-in user's device token and settings for push notifications.
public struct NotificationService: Sendable {
  private let firestore: Firestore
  private let uid: String
  private let documents: DocumentReader

  /// Creates a service for the user with the given uid, as whom `firestore` acts.
  public init(
    firestore: Firestore,
    uid: String,
    documents: DocumentReader = DocumentReader()
  ) {
    self.firestore = firestore
    self.uid = uid
    self.documents = documents
  }

  /// Stores the token of this device, to which notifications are sent from now on.
  ///
  /// Throws `UserServiceError`.
  public func setToken(_ token: String) async throws {
    guard (1...Self.tokenLengthMax).contains(token.utf16.count) else {
      throw UserServiceError.refused("a token has 1 to \(Self.tokenLengthMax) characters")
    }
    try await update(["fcmToken": .value(token)])
  }

  /// Removes the token, for example before the user signs out; throws `UserServiceError`.
  public func removeToken() async throws { try await update(["fcmToken": .delete]) }

  /// Returns the settings; everything is on unless switched off.
  ///
  /// Throws `UserServiceError`.
  public func settings() async throws -> NotificationSettings {
    try await UserServiceError.mapping {
      let snapshot = try await document.get()
      guard snapshot.exists else { throw UserServiceError.userNotFound }
      let user = documents.read(snapshot, as: User.self)?.value
      return user?.notificationSettings ?? NotificationSettings()
    }
  }

  /// Replaces the settings; throws `UserServiceError`.
  public func setSettings(_ settings: NotificationSettings) async throws {
    try await update(["notificationSettings": .value(settings)])
  }

  private func update(_ fields: [String: FieldValue]) async throws {
    try await UserServiceError.mapping {
      try await document.update(fields.merging(["updatedAt": .serverTimestamp]) { $1 })
    }
  }

  private var document: DocumentReference { firestore.collection(User.collection).document(uid) }

  /// The access rules enforce the same limit.
  private static let tokenLengthMax = 4096
}
