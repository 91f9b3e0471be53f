public import FunctionsRuntime
public import PsstModels
import PsstServices

extension MessageFunctions {
  /// Adds what a message says about a client to the client's profile.
  ///
  /// Only in the chat of one trainer with one client, by the words of either. Acts on the message
  /// as it is now. When the provider fails, the event is retried after growing waits.
  public var extractProfileInfoOnMessage: OnDocumentCreated<Lenient<Message>> {
    .init(
      "extractProfileInfoOnMessage",
      at: "chats/{chatId}/messages/{messageId}",
      // Models think for a while, and may be asked more than once.
      options: .init(timeout: .seconds(300), secrets: ["OPENAI_API_KEY"], retry: true)
    ) { event in
      let (chatID, messageID, logger) = try event.message
      let outcome = try await sortingFailures(logger) {
        try await services.profiles.extract(chatID: chatID, messageID: messageID)
      }
      switch outcome {
      case .merged(let merged):
        logger.info(
          "Message read for the client's profile",
          metadata: [
            "facts.added": "\(merged.added)", "facts.refreshed": "\(merged.refreshed)",
            "chat.model": "\(merged.model)", "tokens.total": "\(merged.usage.totalTokens)",
          ]
        )
      case .skipped(let reason):
        logger.info("Message skipped", metadata: ["reason": "\(reason)"])
      }
    }
  }
}
