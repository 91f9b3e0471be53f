public import FunctionsRuntime
public import PsstModels
import PsstServices

extension MessageFunctions {
  /// Updates `members` and `trainerId` in a chat's vectors when the chat's members changed.
  ///
  /// Acts on the chat as it is now. Search does not depend on this for safety, because it checks
  /// membership itself; this lets new members find old messages.
  public var refreshChatMembers: OnDocumentUpdated<Lenient<Chat>> {
    .init(
      "refreshChatMembers",
      at: "chats/{chatId}",
      options: .init(timeout: .seconds(540), secrets: Self.secrets, retry: true)
    ) { event in
      let chatID = try event.params.chatId
      var logger = event.logger
      logger[metadataKey: "chat.id"] = "\(chatID)"
      guard case .readable(let chat) = event.data.after else {
        logger.info("Chat skipped", metadata: ["reason": "it cannot be read"])
        return
      }
      // Before, the chat may have been one that could not be read.
      let before = event.data.before.value
      guard chat.members != before?.members || chat.isGroupChat != before?.isGroupChat else {
        logger.info("Chat skipped", metadata: ["reason": "its members are the same"])
        return
      }
      let refresh = try await sortingFailures {
        try await services.indexer.refreshMembers(ofChat: chatID)
      }
      logger.info(
        "Chat's vectors refreshed",
        metadata: [
          "vectors.refreshed": "\(refresh.refreshed)",
          "vectors.unchanged": "\(refresh.unchanged)",
        ]
      )
    }
  }
}
