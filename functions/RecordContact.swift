public import FunctionsRuntime
public import PsstModels
import PsstServices

extension MessageFunctions {
  /// Keeps the chat's last message, and when the trainer and the client were last in contact.
  ///
  /// When the last message is edited or deleted, the chat shows what is the last one now. Its write
  /// of the chat is an event for `refreshChatMembers`, which has nothing to do because the members
  /// are the same, and ends there.
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
