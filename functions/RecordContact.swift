public import FunctionsRuntime
import PsstBackend
public import PsstModels

extension AppFunctions {
  /// Updates a chat's last message and the time of the last contact with the client.
  ///
  /// When the last message is edited or deleted, the chat shows the message that is now the last.
  /// Writing the chat also triggers `refreshChatMembers`, which ends at once because the members
  /// are unchanged.
  public var recordContact: OnDocumentWritten<Lenient<Message>> {
    .init("recordContact", at: "chats/{chatId}/messages/{messageId}", options: .init(retry: true)) {
      event in
      let (chatID, messageID, logger) = try event.message
      guard !event.data.isSameMessage else {
        logger.info("Message skipped", metadata: ["reason": "it says the same as before"])
        return
      }
      let outcome = try await sortingFailures(logger) {
        try await services.contacts.record(chatID: chatID, messageID: messageID)
      }
      switch outcome {
      case .recorded(let chat, let contact):
        logger.info(
          "Message recorded",
          metadata: ["chat.changed": "\(chat)", "contact.changed": "\(contact)"]
        )
      case .skipped(let reason):
        logger.info("Message skipped", metadata: ["reason": "\(reason)"])
      }
    }
  }
}
