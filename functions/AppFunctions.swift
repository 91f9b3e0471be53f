import FirestoreClient
public import FunctionsRuntime
import PsstModels
public import PsstBackend

/// The functions on messages and their chats.
///
/// Each function is declared in its own file.
public struct AppFunctions: Sendable {
  let services: BackendServices
  let users: AuthAdmin

  /// Creates the functions on top of the given services.
  ///
  /// `users` are those of Authentication; by default there are none, for tests without sign-ups.
  public init(services: BackendServices, users: AuthAdmin = AuthAdmin(environment: [:])) {
    self.services = services
    self.users = users
  }

  /// The app of all functions, to be run by a worker.
  public var app: FunctionsApp {
    FunctionsApp {
      onVectors.prepared { try await services.checkIndex() }
      extractProfileInfoOnMessage
      backfillProfiles
      recordContact
      welcomeUser
      cancelSession
      calendarFeed
      createChat
      validateRelationship
      confirmAction
      summarizeChat
      suggestReminder
      remindInactiveClients
      detectCalendarConflicts
      checkSignUp
      removeUnfinishedSignUp
      migrateExistingChats
      rollbackMigration
    }
  }

  /// The functions that read or write the vector index.
  ///
  /// The app checks that the index matches the embedding model before these functions run.
  @FunctionsBuilder
  var onVectors: [FunctionDefinition] {
    embedMessage
    semanticSearch
    surfaceContext
    chatWithAI
    refreshChatMembers
    backfillEmbeddings
  }

  /// The secrets of the providers.
  ///
  /// A worker receives them only if its function declares them.
  static let secrets = ["OPENAI_API_KEY", "PINECONE_API_KEY"]
}

extension DocumentEvent {
  /// The ids in an event at `chats/{chatId}/messages/{messageId}`, and a logger with them.
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
  /// True if the message is unchanged apart from its readers.
  var isSameMessage: Bool {
    guard let before = before?.value, let after = after?.value else { return false }
    return after.saysSame(as: before)
  }
}

extension AppFunctions {
  /// Runs a trigger's work and marks its failures as temporary or permanent.
  ///
  /// Of the many failures during one outage of a provider, only the first is logged for people.
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
      // For example, the document would be too large.
      throw EventError.permanent("The database does not take what the chat asks for", cause: error)
    }
  }
}

extension ServiceError {
  /// The error that an event's handler throws for this failure.
  ///
  /// An event is retried for as long as its provider has an outage. The delay is at least an hour
  /// if only a person can correct the cause. At a daily limit the event waits until the next day.
  var eventError: EventError {
    guard isOutage else { return .permanent(message) }
    let least: Duration = needsCorrection && circuit != .halfOpen ? .seconds(3600) : .zero
    return .retry(after: max(least, retryAfter ?? .zero), message)
  }
}

extension AppFunctions {
  /// Counts a user's call among those of its kind.
  ///
  /// Throws `permission-denied` for a caller without a user document, such as an anonymous one, who
  /// spends none of the app's money. Throws `resource-exhausted`, with `retryAfterSeconds` in its
  /// details, when the user exceeds the limit of calls per minute.
  func countCall(_ kind: CallLimit.Kind, of uid: String) async throws {
    guard uid.isUserID else {
      throw CallableError(.permissionDenied, "This uid is not valid for users of the app.")
    }
    guard try await services.signUps.isComplete(uid) else {
      throw CallableError(.permissionDenied, "Only users of the app may do this; sign up first.")
    }
    do {
      try await services.callLimit.count(kind, of: uid)
    } catch let error as CallLimitError {
      throw CallableError(.resourceExhausted, "Too many requests", retryAfter: error.retryAfter)
    }
  }
}

extension CallableError {
  /// Creates a temporary failure with `retryAfterSeconds` in its details.
  init(_ code: StatusCode, _ message: String, retryAfter: Duration) {
    let seconds = max(1, Int((retryAfter / .seconds(1)).rounded(.up)))
    self.init(
      code,
      "\(message); try again in \(seconds) \(seconds == 1 ? "second" : "seconds").",
      details: ["retryAfterSeconds": seconds]
    )
  }
}
