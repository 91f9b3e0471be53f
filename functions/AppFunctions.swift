import FirestoreClient
public import FunctionsRuntime
import PsstModels
public import PsstBackend

/// The functions of the app.
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
      mirrorPresence
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
      throw error.callableError
    }
  }
}
