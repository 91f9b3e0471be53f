public import FunctionsRuntime
import PsstServices

extension MessageFunctions {
  /// Updates `members` and `trainerId` in a chat's vectors when the chat's members changed.
  ///
  /// Acts on the chat as it is now. Search does not depend on this for safety, because it checks
  /// membership itself; this lets new members find old messages.
  public var refreshChatMembers: OnDocumentUpdated<FirestoreDocument> {
    .init(
      "refreshChatMembers",
      at: "chats/{chatId}",
      options: .init(timeout: .seconds(540), secrets: Self.secrets, retry: true)
    ) { event in
      let chatID = try event.params.chatId
      var logger = event.logger
      logger[metadataKey: "chat.id"] = "\(chatID)"
      let watched = ["members", "isGroupChat"]
      guard watched.contains(where: { event.data.before.fields[$0] != event.data.after.fields[$0] })
      else {
        logger.info("Chat skipped", metadata: ["reason": "its members are the same"])
        return
      }
      let refresh = try await sortingFailures(logger) {
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
