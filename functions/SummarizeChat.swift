public import FunctionsRuntime
public import PsstServices

extension MessageFunctions {
  /// Sums up the latest 100 messages of a chat for one of its members.
  ///
  /// The model is asked only when what it sums up has changed since. To all others the chat is
  /// `not-found`, whether there is one or not.
  public var summarizeChat: OnCall<SummarizeChatRequest, SummarizeChatReply> {
    .init(
      "summarizeChat",
      callers: .users,
      options: .init(timeout: .seconds(120), secrets: ["OPENAI_API_KEY"])
    ) { request in
      let uid = try request.requireUser()
      let chatID = try request.data.chatId.checkedID(of: "chat", "chatId")
      try await countCall(of: uid)
      let summary = try await assisting(request.logger) {
        try await services.quickActions.summarize(chatID, for: uid)
      }
      request.logger.info(
        "Chat summed up",
        metadata: [
          "chat.id": "\(chatID)", "messages": "\(summary.messages)",
          "cached": "\(summary.isCached)", "tokens.total": "\(summary.usage.totalTokens)",
        ]
      )
      return SummarizeChatReply(chatID, summary)
    }
  }
}

/// The request of `summarizeChat`.
public struct SummarizeChatRequest: Codable, Sendable, Hashable {
  /// A chat of the caller.
  public var chatId: String

  /// A request.
  public init(chatId: String) {
    self.chatId = chatId
  }
}

/// The answer of `summarizeChat`.
public struct SummarizeChatReply: Codable, Sendable, Hashable {
  /// The chat.
  public var chatId: String
  /// The summary; empty for a chat without messages.
  public var summary: String
  /// How many messages it is of, the latest ones.
  public var messages: Int
  /// Whether no model was asked for it this time.
  public var cached: Bool
  /// The model; null where none was needed.
  @Nullable public var model: String?
  /// Whether messages, or parts of them, are left out because they are too long.
  public var degraded: Bool
  /// What the summary lacks, or why there is none; null when it lacks nothing.
  @Nullable public var note: String?
  /// The tokens that it cost this time.
  public var usage: ChatWithAIReply.Usage

  init(_ chatID: String, _ summary: QuickActions.Summary) {
    chatId = chatID
    self.summary = summary.text
    messages = summary.messages
    cached = summary.isCached
    model = summary.model
    degraded = summary.messages > 0 && summary.shortcoming != nil
    note = summary.shortcoming
    usage = ChatWithAIReply.Usage(summary.usage)
  }
}
