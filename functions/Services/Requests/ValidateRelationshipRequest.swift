/// The request of `validateRelationship`.
public struct ValidateRelationshipRequest: Codable, Sendable, Hashable {
  /// The uid of the trainer.
  public var trainerId: String
  /// The uid of the client.
  public var clientId: String

  /// Creates a request; the caller must be one of the two.
  public init(trainerId: String, clientId: String) {
    self.trainerId = trainerId
    self.clientId = clientId
  }
}

/// The result of `validateRelationship`.
public struct ValidateRelationshipReply: Codable, Sendable, Hashable {
  /// True if the client is a contact of the trainer.
  public var isContact: Bool

  /// Creates a result.
  public init(isContact: Bool) {
    self.isContact = isContact
  }
}
