public import FirestoreClient

/// What the assistant did, or wants to do, for somebody, `aiActions/{actionId}`.
public struct AIAction: Codable, Sendable, Hashable {
  /// The one who asked for it.
  public var trainerId: String
  /// The conversation in which it came up.
  public var conversationId: String
  /// The tool that the model called.
  public var action: String
  /// The tool's arguments.
  public var parameters: [String: String]
  /// The name of the person or the group that it is for; nil where it is for its owner alone.
  public var targetName: String?
  /// What has come of it.
  public var status: Status
  /// The path of the document that it wrote, or why nothing was done; nil while it is proposed.
  public var result: String?
  /// When the status was last set.
  public var timestamp: Timestamp
  /// Until when a proposal can be confirmed; nil for actions that need no confirmation.
  public var expiresAt: Timestamp?

  /// What can come of an action.
  public enum Status: String, Codable, Sendable, Hashable {
    /// It waits for its owner's word.
    case proposed
    case done
    /// It is not allowed, or its owner said no.
    case refused
    case failed
  }

  /// An action.
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

  /// Where actions are stored.
  public static let collection = "aiActions"
}
