import FirestoreClient
/// The request of `suggestReminder`.
public struct SuggestReminderRequest: Codable, Sendable, Hashable {
  /// The id of a chat of which the caller is a member.
  public var chatId: String
  /// The id of a message in the chat.
  public var messageId: String

  /// Creates a request for one message of a chat.
  public init(chatId: String, messageId: String) {
    self.chatId = chatId
    self.messageId = messageId
  }
}

/// The result of `suggestReminder`.
public struct SuggestReminderReply: Codable, Sendable, Hashable {
  /// The suggested reminder; null if the message suggests none.
  @Nullable public var reminder: Suggestion?
  /// True if the result is from the cache and no model was asked.
  public var cached: Bool
  /// The name of the model; null if none was needed.
  @Nullable public var model: String?
  /// The tokens used by this call.
  public var usage: ChatWithAIReply.Usage

  /// A suggested reminder, not yet stored.
  public struct Suggestion: Codable, Sendable, Hashable {
    /// The text of the reminder.
    public var text: String
    /// The time of the reminder in milliseconds since 1970; later than now.
    public var dueDate: Int64
    /// The id with which `confirmAction` stores the reminder, once, within ten minutes.
    ///
    /// Each call of `suggestReminder` extends the time. The id is null if the reminder cannot be
    /// stored any more.
    @Nullable public var actionId: String?

    /// Creates a suggestion.
    public init(text: String, dueDate: Int64, actionId: String?) {
      self.text = text
      self.dueDate = dueDate
      self.actionId = actionId
    }
  }

  /// Creates a result.
  public init(reminder: Suggestion?, cached: Bool, model: String?, usage: ChatWithAIReply.Usage) {
    self.reminder = reminder
    self.cached = cached
    self.model = model
    self.usage = usage
  }
}
