public import FunctionsRuntime
public import PsstModels
import PsstServices

extension MessageFunctions {
  /// Keeps one vector for each message with text: made, replaced and deleted with the message.
  ///
  /// Acts on the message as it is now, whatever the event said, so that events may come twice and
  /// in any order. Only an event that says that nothing but the readers changed is left alone. When
  /// the provider fails, the event is retried later; the message itself never waits.
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

extension MessageServices {
  /// The model that makes the vectors, for logs.
  var modelMetadata: Logger.Metadata { search.model.metadata }
}

extension EmbeddingModel {
  /// The model, for logs.
  var metadata: Logger.Metadata {
    [
      "embedding.provider": "\(provider)", "embedding.model": "\(name)",
      "embedding.degraded": "\(isDegraded)",
    ]
  }
}
