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

  /// Creates a result.
  public init(
    chatId: String,
    summary: String,
    messages: Int,
    cached: Bool,
    model: String?,
    degraded: Bool,
    note: String?,
    usage: ChatWithAIReply.Usage
  ) {
    self.chatId = chatId
    self.summary = summary
    self.messages = messages
    self.cached = cached
    self.model = model
    self.degraded = degraded
    self.note = note
    self.usage = usage
  }
}
