public import FunctionsRuntime
import PsstBackend
public import PsstServices

extension AppFunctions {
  /// Suggests a reminder for a message to a trainer, who stores it by `confirmAction`.
  ///
  /// The model is asked only when the message or its sender's name has changed since the last call.
  /// Callers who are not trainers get `permission-denied`, and a chat of other users is
  /// `not-found`.
  public var suggestReminder: OnCall<SuggestReminderRequest, SuggestReminderReply> {
    .init(
      "suggestReminder",
      callers: .users,
      options: .init(timeout: .seconds(120), secrets: ["OPENAI_API_KEY"])
    ) { request in
      let uid = try request.requireUser()
      let chatID = try request.data.chatId.checkedID(of: "chat", "chatId")
      let messageID = try request.data.messageId.checkedID(of: "message", "messageId")
      try await countCall(.quickActions, of: uid)
      let (suggestion, actionID) = try await answering(request.logger) {
        let suggestion = try await services.quickActions.suggestReminder(
          from: messageID,
          in: chatID,
          for: uid
        )
        return (
          suggestion,
          try await services.assistant.propose(suggestion, from: messageID, in: chatID, to: uid)
        )
      }
      request.logger.info(
        "Message looked at for a reminder",
        metadata: [
          "chat.id": "\(chatID)", "message.id": "\(messageID)",
          "suggested": "\(suggestion.text != nil)", "cached": "\(suggestion.isCached)",
          "tokens.total": "\(suggestion.usage.totalTokens)",
        ]
      )
      return SuggestReminderReply(suggestion, actionID: actionID)
    }
  }
}
