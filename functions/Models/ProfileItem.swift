public import FirestoreClient

/// A fact about a client, with the message that stated it.
public struct ProfileItem: Codable, Sendable, Hashable, Identifiable {
  /// The fact's id, the same each time the fact is found in the same message.
  public var id: String
  /// The fact in a few words.
  public var text: String
  /// The category of the fact, which is also the name of its list.
  public var category: ProfileCategory
  /// The confidence in the fact.
  public var confidence: Confidence
  /// The time of the latest message that stated the fact.
  public var timestamp: Timestamp
  /// The id of the message that stated the fact first.
  public var sourceMessageId: String
  /// The id of the chat that holds the message.
  public var sourceChatId: String
  /// True if the trainer has confirmed the fact.
  ///
  /// A confirmed fact stays until the trainer removes it.
  public var confirmed: Bool?

  /// Creates a fact, unconfirmed by default.
  public init(
    id: String,
    text: String,
    category: ProfileCategory,
    confidence: Confidence,
    timestamp: Timestamp,
    sourceMessageId: String,
    sourceChatId: String,
    confirmed: Bool? = nil
  ) {
    self.id = id
    self.text = text
    self.category = category
    self.confidence = confidence
    self.timestamp = timestamp
    self.sourceMessageId = sourceMessageId
    self.sourceChatId = sourceChatId
    self.confirmed = confirmed
  }

  /// The levels of confidence, by how plainly a message stated the fact.
  public enum Confidence: String, Codable, Sendable, Hashable, CaseIterable {
    case high, medium, low

    /// Returns true if this level is below the other.
    public func isLess(than other: Confidence) -> Bool {
      switch (self, other) {
      case (.low, .medium), (.low, .high), (.medium, .high): true
      default: false
      }
    }
  }
}

/// The categories of facts about a client.
///
/// Each category is a list of the profile.
public enum ProfileCategory: String, Codable, Sendable, Hashable, CaseIterable {
  case injuries, goals, equipment, preferences, travel, stressFactors
}
