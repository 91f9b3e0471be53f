public import FunctionsRuntime
import PsstBackend
public import PsstModels

extension AppFunctions {
  /// Stores the facts that a message states about a client in the client's profile.
  ///
  /// Applies only to the chat of one trainer with one of their contacts, and to the messages of
  /// both. The function acts on the current message: facts that an edited or deleted message no
  /// longer states are removed. When the provider fails, the event is retried with increasing
  /// delays.
  public var extractProfileInfoOnMessage: OnDocumentWritten<Lenient<Message>> {
    .init(
      "extractProfileInfoOnMessage",
      at: "chats/{chatId}/messages/{messageId}",
      // A model may take long to answer, and may be asked more than once.
      options: .init(timeout: .seconds(300), secrets: ["OPENAI_API_KEY"], retry: true)
    ) { event in
      let (chatID, messageID, logger) = try event.message
      guard !event.data.isSameMessage else {
        logger.info("Message skipped", metadata: ["reason": "it says the same as before"])
        return
      }
      let outcome = try await sortingFailures(logger) {
        try await services.profiles.extract(chatID: chatID, messageID: messageID)
      }
      switch outcome {
      case .merged(let merged):
        logger.info(
          "Message read for the client's profile",
          metadata: [
            "facts.added": "\(merged.added)", "facts.refreshed": "\(merged.refreshed)",
            "facts.removed": "\(merged.removed)", "chat.model": "\(merged.model)",
            "tokens.total": "\(merged.usage.totalTokens)",
          ]
        )
      case .retracted(let removed):
        logger.info("Facts removed with the message", metadata: ["facts.removed": "\(removed)"])
      case .busy:
        throw EventError.retry(after: .seconds(5), "another worker is reading this message")
      case .skipped(let reason):
        logger.info("Message skipped", metadata: ["reason": "\(reason)"])
      }
    }
  }
}
