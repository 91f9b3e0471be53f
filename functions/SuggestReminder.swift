public import FunctionsRuntime
public import PsstServices

extension MessageFunctions {
  /// Suggests to a trainer the reminder that a message gives reason for, and writes none.
  ///
  /// The model is asked only when the message or its sender's name has changed since. Callers who
  /// are no trainers get `permission-denied`; a chat of others is `not-found`.
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
  /// A chat of the caller.
  public var chatId: String
  /// A message of the chat.
  public var messageId: String

  /// A request.
  public init(chatId: String, messageId: String) {
    self.chatId = chatId
    self.messageId = messageId
  }
}

/// The answer of `suggestReminder`.
public struct SuggestReminderReply: Codable, Sendable, Hashable {
  /// The reminder; null when the message suggests none.
  @Nullable public var reminder: Suggestion?
  /// Whether no model was asked for it this time.
  public var cached: Bool
  /// The model; null where none was needed.
  @Nullable public var model: String?
  /// The tokens that it cost this time.
  public var usage: ChatWithAIReply.Usage

  /// A reminder that is not written.
  public struct Suggestion: Codable, Sendable, Hashable {
    /// What to think of.
    public var text: String
    /// When to think of it, in milliseconds since 1970; later than now.
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
