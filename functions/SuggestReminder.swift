public import FunctionsRuntime
public import PsstServices

extension MessageFunctions {
  /// Suggests a reminder for a message to a trainer, without writing it.
  ///
  /// The model is asked only when the message or its sender's name has changed since the last call.
  /// Callers who are not trainers get
  /// `permission-denied`, and a chat of other users is `not-found`.
  public var suggestReminder: OnCall<SuggestReminderRequest, SuggestReminderReply> {
    .init(
      "suggestReminder",
      callers: .users,
      options: .init(timeout: .seconds(120), secrets: ["OPENAI_API_KEY"])
    ) { request in
      let uid = try request.requireUser()
      let chatID = try request.data.chatId.checkedID(of: "chat", "chatId")
      let messageID = try request.data.messageId.checkedID(of: "message", "messageId")
      try await countCall(of: uid)
      let suggestion = try await assisting(request.logger) {
        try await services.quickActions.suggestReminder(from: messageID, in: chatID, for: uid)
      }
      request.logger.info(
        "Message looked at for a reminder",
        metadata: [
          "chat.id": "\(chatID)", "message.id": "\(messageID)",
          "suggested": "\(suggestion.text != nil)", "cached": "\(suggestion.isCached)",
          "tokens.total": "\(suggestion.usage.totalTokens)",
        ]
      )
      return SuggestReminderReply(suggestion)
    }
  }
}

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

  /// A suggested reminder, not yet written.
  public struct Suggestion: Codable, Sendable, Hashable {
    /// The text of the reminder.
    public var text: String
    /// The time of the reminder in milliseconds since 1970; later than now.
    public var dueDate: Int64
  }

  init(_ suggestion: QuickActions.Suggestion) {
    if let text = suggestion.text, let due = suggestion.dueDate {
      reminder = Suggestion(text: text, dueDate: due.microseconds / 1000)
    } else {
      reminder = nil
    }
    cached = suggestion.isCached
    model = suggestion.model
    usage = ChatWithAIReply.Usage(suggestion.usage)
  }
}
