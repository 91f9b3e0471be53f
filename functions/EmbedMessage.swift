public import FunctionsRuntime
public import PsstModels
import PsstBackend

extension AppFunctions {
  /// Keeps one vector for each message that has text.
  ///
  /// The vector is created, replaced and deleted with the message. The function acts on the current
  /// message, whatever the event contains, so events may arrive twice and in any order. It skips
  /// only events in which nothing but the readers changed. When the provider fails, the event is
  /// retried later, and the message itself is never delayed.
  public var embedMessage: OnDocumentWritten<Lenient<Message>> {
    .init(
      "embedMessage",
      at: "chats/{chatId}/messages/{messageId}",
      options: .init(secrets: Self.secrets, retry: true)
    ) { event in
      let (chatID, messageID, logger) = try event.message
      guard !event.data.isSameMessage else {
        logger.info("Message skipped", metadata: ["reason": "it says the same as before"])
        return
      }
      let outcome = try await sortingFailures(logger) {
        try await services.indexer.index(chatID: chatID, messageID: messageID)
      }
      switch outcome {
      case .indexed:
        logger.info("Message embedded", metadata: services.modelMetadata)
      case .skipped(let reason):
        logger.info("Message skipped", metadata: ["reason": "\(reason)"])
      case .deleted:
        logger.info("Message is gone, vector deleted")
      }
    }
  }
}

extension BackendServices {
  /// The embedding model's log metadata.
  var modelMetadata: Logger.Metadata { search.model.metadata }
}

extension EmbeddingModel {
  /// The model's log metadata.
  var metadata: Logger.Metadata {
    [
      "embedding.provider": "\(provider)", "embedding.model": "\(name)",
      "embedding.degraded": "\(isDegraded)",
    ]
  }
}
