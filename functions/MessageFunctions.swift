import FirestoreClient
public import FunctionsRuntime
import PsstModels
public import PsstServices

/// The functions on messages and their chats; each is declared in a file of its own.
public struct MessageFunctions: Sendable {
  let services: MessageServices

  /// Functions over these services.
  public init(services: MessageServices) {
    self.services = services
  }

  /// The functions as an app, to be run by a worker.
  public var app: FunctionsApp {
    FunctionsApp {
      onVectors.prepared { try await services.checkIndex() }
      extractProfileInfoOnMessage
      backfillProfiles
      recordContact
      confirmAction
      summarizeChat
      suggestReminder
      remindInactiveClients
      detectCalendarConflicts
      migrateExistingChats
      rollbackMigration
    }
  }

  /// The functions that read or write the vector index, which must therefore fit their model.
  @FunctionsBuilder
  var onVectors: [FunctionDefinition] {
    embedMessage
    semanticSearch
    surfaceContext
    chatWithAI
    refreshChatMembers
    backfillEmbeddings
  }

  /// The keys of providers, which a worker gets only if its function asks for them.
  static let secrets = ["OPENAI_API_KEY", "PINECONE_API_KEY"]
}

extension DocumentEvent {
  /// The message of an event at `chats/{chatId}/messages/{messageId}`, with a logger that names it.
  var message: (chatID: String, messageID: String, logger: Logger) {
    get throws {
      let chatID = try params.chatId
      let messageID = try params.messageId
      var logger = logger
      logger[metadataKey: "chat.id"] = "\(chatID)"
      logger[metadataKey: "message.id"] = "\(messageID)"
      return (chatID, messageID, logger)
    }
  }
}

extension DocumentWrite<Lenient<Message>> {
  /// Whether the message says the same as before, as when somebody has read it.
  var isSameMessage: Bool {
    guard let before = before?.value, let after = after?.value else { return false }
    return after.saysSame(as: before)
  }
}

extension MessageFunctions {
  /// Runs a trigger's work and marks its failures as temporary or permanent.
  ///
  /// Of the many failures for one outage of a provider the first is logged for people.
  func sortingFailures<Output>(
    _ logger: Logger,
    _ work: () async throws -> Output
  ) async throws -> Output {
    do {
      return try await work()
    } catch let error as ServiceError {
      if error.isNews {
        logger.log(
          level: error.needsCorrection ? .error : .warning,
          "Events wait for a provider",
          metadata: ["reason": "\(error)"]
        )
      }
      throw error.eventError
    } catch let error as FirestoreError where error.code == .invalidArgument {
      // For example a document that would be too large.
      throw EventError.permanent("The database does not take what the chat asks for", cause: error)
    }
  }
}

extension ServiceError {
  /// The failure as an event's handler reports it.
  ///
  /// An event waits as long as its provider serves nobody, in steps of an hour where only a person
  /// can end that, and at a limit of the day until the next day.
  var eventError: EventError {
    guard isOutage else { return .permanent(message) }
    let least: Duration = needsCorrection && circuit != .halfOpen ? .seconds(3600) : .zero
    return .retry(after: max(least, retryAfter ?? .zero), message)
  }
}

extension MessageFunctions {
  /// Counts a user's call that may ask a model.
  ///
  /// Throws `resource-exhausted`, with `retryAfterSeconds` in its details, beyond so many a minute.
  func countCall(of uid: String) async throws {
    do {
      try await services.searchLimit.count(uid)
    } catch let error as SearchLimitError {
      throw CallableError(.resourceExhausted, "Too many requests", retryAfter: error.retryAfter)
    }
  }
}

extension CallableError {
  /// A failure that passes, with the time until then as `retryAfterSeconds` in its details.
  init(_ code: StatusCode, _ message: String, retryAfter: Duration) {
    let seconds = max(1, Int((retryAfter / .seconds(1)).rounded(.up)))
    self.init(
      code,
      "\(message); try again in \(seconds) \(seconds == 1 ? "second" : "seconds").",
      details: ["retryAfterSeconds": seconds]
    )
  }
}
