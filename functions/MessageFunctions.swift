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
      recordContact
      migrateExistingChats
    }
  }

  /// The functions that read or write the vector index, which must therefore fit their model.
  @FunctionsBuilder
  var onVectors: [FunctionDefinition] {
    embedMessage
    semanticSearch
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
  func sortingFailures<Output>(_ work: () async throws -> Output) async throws -> Output {
    do {
      return try await work()
    } catch let error as ServiceError {
      throw error.eventError
    } catch let error as FirestoreError where error.code == .invalidArgument {
      // For example a document that would be too large.
      throw EventError.permanent("The database does not take what the chat asks for", cause: error)
    }
  }
}

extension ServiceError {
  /// The failure as an event's handler reports it.
  var eventError: EventError {
    guard isTransient || kind == .quotaExhausted else { return .permanent(message) }
    // Unless the service names a wait, the wait starts here and grows with the attempts.
    return .retry(after: retryAfter ?? .seconds(1), message)
  }

  /// The failure as the client of a callable sees it.
  var callableError: CallableError {
    let seconds = retryAfter.map { ["retryAfterSeconds": Double($0.components.seconds)] }
    return switch kind {
    case .unavailable:
      CallableError(.unavailable, "Search is not available right now.", details: seconds)
    case .rateLimited, .quotaExhausted:
      CallableError(.resourceExhausted, "Search is over its quota.", details: seconds)
    case .misconfigured: CallableError(.failedPrecondition, "Search is not configured correctly.")
    case .refused, .notFound, .alreadyExists: CallableError(.internal, "Search failed.")
    }
  }
}
