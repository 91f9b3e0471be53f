public import FunctionsRuntime
import PsstBackend
public import PsstServices

extension AppFunctions {
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
      try await countCall(.quickActions, of: uid)
      let summary = try await answering(request.logger) {
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
