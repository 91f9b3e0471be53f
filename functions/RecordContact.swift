public import FunctionsRuntime
import PsstServices

extension MessageFunctions {
  /// Keeps the chat's last message, and when the trainer and the client were last in contact.
  ///
  /// Writes only what is older than the message. Its write of the chat is an event for
  /// `refreshChatMembers`, which has nothing to do because the members are the same, and ends
  /// there.
  public var recordContact: OnDocumentCreated<FirestoreDocument> {
    .init("recordContact", at: "chats/{chatId}/messages/{messageId}", options: .init(retry: true)) {
      event in
      let (chatID, messageID, logger) = try event.message
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
        logger.info("Message skipped", metadata: ["reason": "\(reason.rawValue)"])
      }
    }
  }
}
