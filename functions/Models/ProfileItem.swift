public import FirestoreClient

/// One fact about a client, with the message it comes from.
public struct ProfileItem: Codable, Sendable, Hashable {
  /// The fact's id, the same whenever the fact is found in the same message.
  public var id: String
  /// The fact in a few words.
  public var text: String
  /// The subject of the fact, which also names its list.
  public var category: ProfileCategory
  /// How plainly the fact was said.
  public var confidence: Confidence
  /// When the fact was last said.
  public var timestamp: Timestamp
  /// The message that said the fact first.
  public var sourceMessageId: String
  /// The chat of that message.
  public var sourceChatId: String
  /// Whether the trainer has confirmed the fact, which then stays until the trainer removes it.
  public var confirmed: Bool?

  /// A fact.
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

  /// How plainly a fact was said.
  public enum Confidence: String, Codable, Sendable, Hashable, CaseIterable {
    case high, medium, low

    /// Whether a fact was said less plainly than another.
    public func isLess(than other: Confidence) -> Bool {
      switch (self, other) {
      case (.low, .medium), (.low, .high), (.medium, .high): true
      default: false
      }
    }
  }
}

/// What a trainer wants to know about a client; each category is a list of the profile.
public enum ProfileCategory: String, Codable, Sendable, Hashable, CaseIterable {
  case injuries, goals, equipment, preferences, travel, stressFactors
}
