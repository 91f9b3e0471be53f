public import FirestoreClient

/// An action that the assistant performed or proposed, stored at `aiActions/{actionId}`.
public struct AIAction: Codable, Sendable, Hashable {
  /// The id of the trainer who asked for the action.
  public var trainerId: String
  /// The id of the conversation in which the action was requested; empty for a quick action.
  public var conversationId: String
  /// The name of the tool that the model called.
  public var action: String
  /// The arguments of the tool, by their names.
  public var parameters: [String: String]
  /// The name of the person or group addressed; nil if it is the owner.
  public var targetName: String?
  /// The state of the action.
  public var status: Status
  /// The path of the document written, or the reason that nothing was done.
  ///
  /// It is nil while the action is proposed.
  public var result: String?
  /// The time at which the status was last set.
  public var timestamp: Timestamp
  /// The time at which a proposal expires; nil for an action without a confirmation.
  public var expiresAt: Timestamp?

  /// The states of an action.
  public enum Status: String, Codable, Sendable, Hashable {
    /// The action waits for its owner's decision.
    case proposed
    case done
    /// The action is not allowed, or its owner declined it.
    case refused
    case failed
  }

  /// Creates an action without a target's name.
  public init(
    trainerId: String,
    conversationId: String,
    action: String,
    parameters: [String: String],
    status: Status,
    result: String? = nil,
    timestamp: Timestamp,
    expiresAt: Timestamp? = nil
  ) {
    self.trainerId = trainerId
    self.conversationId = conversationId
    self.action = action
    self.parameters = parameters
    self.status = status
    self.result = result
    self.timestamp = timestamp
    self.expiresAt = expiresAt
  }

  /// The name of the collection of actions.
  public static let collection = "aiActions"
}
