public import FunctionsRuntime
public import PsstServices

extension MessageFunctions {
  /// Summarizes the latest 100 messages of a chat for one of its members.
  ///
  /// The model is asked only when its input has changed since the last call. A caller who is not a
  /// member gets `not-found`, whether the chat exists or not.
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
  /// The id of a chat of which the caller is a member.
  public var chatId: String

  /// Creates a request for the summary of a chat.
  public init(chatId: String) {
    self.chatId = chatId
  }
}

/// The result of `summarizeChat`.
public struct SummarizeChatReply: Codable, Sendable, Hashable {
  /// The id of the chat.
  public var chatId: String
  /// The summary; empty for a chat without messages.
  public var summary: String
  /// The number of messages summarized, counted from the latest.
  public var messages: Int
  /// True if the result is from the cache and no model was asked.
  public var cached: Bool
  /// The name of the model; null if none was needed.
  @Nullable public var model: String?
  /// True if messages, or parts of them, are left out because they are too long.
  public var degraded: Bool
  /// The reason that the summary is incomplete or missing; null if it is complete.
  @Nullable public var note: String?
  /// The tokens used by this call.
  public var usage: ChatWithAIReply.Usage

  init(_ chatID: String, _ summary: QuickActions.Summary) {
    chatId = chatID
    self.summary = summary.text
    messages = summary.messages
    cached = summary.isCached
    model = summary.model
    degraded = summary.messages > 0 && summary.limitation != nil
    note = summary.limitation
    usage = ChatWithAIReply.Usage(summary.usage)
  }
}
