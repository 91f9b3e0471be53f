public import FunctionsRuntime
import PsstServices

extension MessageFunctions {
  /// Keeps `members` and `trainerId` in a chat's vectors, and deletes its vectors with the chat.
  ///
  /// Acts on the chat as it is now. Search does not depend on this for safety, because it checks
  /// membership itself; this lets new members find old messages.
  public var refreshChatMembers: OnDocumentWritten<FirestoreDocument> {
    .init(
      "refreshChatMembers",
      at: "chats/{chatId}",
      options: .init(timeout: .seconds(540), secrets: Self.secrets, retry: true)
    ) { event in
      let chatID = try event.params.chatId
      var logger = event.logger
      logger[metadataKey: "chat.id"] = "\(chatID)"
      if let reason = Self.reasonToSkip(event.data) {
        logger.info("Chat skipped", metadata: ["reason": "\(reason)"])
        return
      }
      let outcome = try await sortingFailures(logger) {
        try await services.indexer.indexChat(chatID)
      }
      switch outcome {
      case .refreshed(let refreshed, let unchanged):
        logger.info(
          "Chat's vectors refreshed",
          metadata: ["vectors.refreshed": "\(refreshed)", "vectors.unchanged": "\(unchanged)"]
        )
      case .deleted(let deleted):
        logger.info("Chat is gone, vectors deleted", metadata: ["vectors.deleted": "\(deleted)"])
      }
    }
  }

  private static func reasonToSkip(_ write: DocumentWrite<FirestoreDocument>) -> String? {
    switch write {
    case .created: "it is new"
    case .deleted: nil
    case .updated(let before, let after, _):
      ["members", "isGroupChat"].contains { before.fields[$0] != after.fields[$0] }
        ? nil : "its members are the same"
    }
  }
}
