public import FunctionsRuntime
import PsstBackend
public import PsstModels

extension AppFunctions {
  /// Updates `members` and `trainerId` in a chat's vectors.
  ///
  /// Deletes the vectors when the chat is deleted. Acts on the current chat. Search does not rely
  /// on this function for access control, because it checks membership itself. The update lets new
  /// members find old messages.
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
      // The previous version of the chat may have been unreadable.
      guard let before = before.value else { return nil }
      let isSame = before.members == after.members && before.isGroupChat == after.isGroupChat
      return isSame ? "its members are the same" : nil
    }
  }
}
