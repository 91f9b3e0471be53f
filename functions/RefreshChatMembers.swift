public import FunctionsRuntime
public import PsstModels
import PsstServices

extension MessageFunctions {
  /// Keeps `members` and `trainerId` in a chat's vectors, and deletes its vectors with the chat.
  ///
  /// Acts on the chat as it is now. Search does not depend on this for safety, because it checks
  /// membership itself; this lets new members find old messages.
  public var refreshChatMembers: OnDocumentWritten<Lenient<Chat>> {
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
      case .skipped(let reason):
        logger.info("Chat skipped", metadata: ["reason": "\(reason)"])
      }
    }
  }

  private static func reasonToSkip(_ write: DocumentWrite<Lenient<Chat>>) -> String? {
    switch write {
    case .created: return "it is new"
    case .deleted: return nil
    case .updated(_, .unreadable, _): return "it cannot be read"
    case .updated(let before, .readable(let after), _):
      // Before, the chat may have been one that could not be read.
      guard let before = before.value else { return nil }
      let isSame = before.members == after.members && before.isGroupChat == after.isGroupChat
      return isSame ? "its members are the same" : nil
    }
  }
}
