public import FirestoreClient
public import Foundation
public import PsstModels

/// The assistant and the search, as the app of the signed-in user uses them.
public struct AIService: Sendable {
  private let firestore: Firestore
  private let uid: String
  private let functions: CallableClient
  private let now: @Sendable () -> Date

  /// Creates a service for the user with the given uid, as whom `firestore` and `functions` act.
  public init(
    firestore: Firestore,
    uid: String,
    functions: CallableClient,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.firestore = firestore
    self.uid = uid
    self.functions = functions
    self.now = now
  }

  // MARK: Questions

  /// Asks the assistant and returns its answer.
  ///
  /// Without `conversationID` a new conversation begins. If no response comes, ask again with the
  /// same `requestID`: the question is then answered once, and its actions are done once. Throws
  /// `AIError`.
  public func chatWithAI(
    _ message: String,
    conversationID: String? = nil,
    requestID: String? = nil
  ) async throws -> ChatWithAIReply {
    let request = ChatWithAIRequest(
      message: message,
      conversationId: conversationID,
      requestId: requestID ?? UUID().uuidString
    )
    return try await call("chatWithAI", request, timeout: Self.answerTimeMax)
  }

  /// Asks the assistant, passes its words to `receive` as they come, and returns its answer.
  ///
  /// Throws `AIError`, and rethrows the error of `receive`. Ask again with the same `requestID` if
  /// the connection breaks; the answer is then the same.
  public func chatWithAI(
    _ message: String,
    conversationID: String? = nil,
    requestID: String? = nil,
    receive: (ChatWithAIChunk) async throws -> Void
  ) async throws -> ChatWithAIReply {
    let request = ChatWithAIRequest(
      message: message,
      conversationId: conversationID,
      requestId: requestID ?? UUID().uuidString
    )
    do {
      return try await functions.stream("chatWithAI", request, receive: receive)
    } catch let failure as CallFailure {
      throw AIError(failure)
    } catch let error as AuthenticationError {
      throw try AIError.of(error)
    } catch let error as FirestoreError {
      throw try AIError.of(error)
    }
  }

  /// Returns what the assistant proposed to the user and has not expired, the newest first.
  ///
  /// So an app finds a proposal again that it has not shown to the end. These are at most 50, by
  /// the device's clock; `confirmAction` decides by the server's. Throws `AIError`.
  public func proposals() async throws -> [ChatWithAIReply.Action] {
    try await AIError.mapping {
      let found = try await firestore.collection(AIAction.collection)
        .where("trainerId", .equal, uid).where("status", .equal, AIAction.Status.proposed)
        .where("expiresAt", .greaterThan, now()).order(by: "expiresAt", descending: true)
        .limit(Self.proposalsMax).get()
      // An action that cannot be read was not written by this version of the server.
      return found.compactMap { snapshot in
        (try? snapshot.data(as: AIAction.self)).map {
          ChatWithAIReply.Action(id: snapshot.id, $0)
        }
      }
    }
  }

  /// Accepts or declines what the assistant proposed, and returns the action as it is now.
  ///
  /// An action is done at most once, however often it is accepted. Throws `AIError`.
  @discardableResult
  public func confirmAction(
    _ actionID: String,
    accept: Bool
  ) async throws -> ChatWithAIReply.Action {
    try await call("confirmAction", ConfirmActionRequest(actionId: actionID, accept: accept))
  }

  // MARK: Messages

  /// Finds messages by their meaning; throws `AIError`.
  public func semanticSearch(
    _ query: String,
    limit: Int? = nil,
    chatID: String? = nil
  ) async throws -> SemanticSearchReply {
    try await call(
      "semanticSearch",
      SemanticSearchQuery(query: query, limit: limit, chatId: chatID)
    )
  }

  /// Returns a summary of a chat; throws `AIError`.
  public func summarizeChat(_ chatID: String) async throws -> SummarizeChatReply {
    try await call(
      "summarizeChat",
      SummarizeChatRequest(chatId: chatID),
      timeout: Self.answerTimeMax
    )
  }

  /// Returns earlier messages related to one; throws `AIError`.
  public func surfaceContext(
    of messageID: String,
    in chatID: String
  ) async throws -> SemanticSearchReply {
    try await call("surfaceContext", SurfaceContextRequest(chatId: chatID, messageId: messageID))
  }

  /// Returns a reminder for a message, if it suggests one; throws `AIError`.
  public func suggestReminder(
    for messageID: String,
    in chatID: String
  ) async throws -> SuggestReminderReply {
    try await call(
      "suggestReminder",
      SuggestReminderRequest(chatId: chatID, messageId: messageID),
      timeout: Self.answerTimeMax
    )
  }

  // MARK: Conversations

  /// Returns the user's conversations, the latest first.
  ///
  /// Throws `AIError`.
  public func conversations(
    limit: Int = 50
  ) async throws -> [ListedConversation] {
    try await AIError.mapping {
      let found = try await conversationsCollection.order(by: "updatedAt", descending: true)
        .limit(limit).get()
      // A conversation that cannot be read was not written by this version of the server.
      return found.compactMap { snapshot in
        (try? snapshot.data(as: AIConversation.self)).map {
          ListedConversation(id: snapshot.id, conversation: $0)
        }
      }
    }
  }

  /// The last 100 messages of a conversation now and after every change, the oldest first.
  public func observeMessages(in conversationID: String) -> Updates<[AIMessage]> {
    let query = conversationsCollection.document(conversationID)
      .collection(AIMessage.collection).order(by: "timestamp", descending: true)
      .limit(Self.messagesMax)
    return Updates(query.snapshots(), errors: AIError.self) { snapshot in
      // A message that this version cannot read is not shown.
      snapshot.reversed().compactMap { try? $0.data(as: AIMessage.self) }
    }
  }

  // MARK: Helpers

  private var conversationsCollection: CollectionReference {
    firestore.collection(User.collection).document(uid).collection(AIConversation.collection)
  }

  private func call<Reply: Decodable>(
    _ function: String,
    _ request: some Encodable & Sendable,
    timeout: Duration = AppServices.timeout
  ) async throws -> Reply {
    do {
      return try await functions.call(function, request, timeout: timeout)
    } catch let failure as CallFailure {
      throw AIError(failure)
    } catch {
      throw try AIError.of(error)
    }
  }

  /// The time limit of questions to a model, above that of the functions.
  private static let answerTimeMax: Duration = .seconds(150)
  private static let messagesMax = 100
  /// More than anybody decides on within the ten minutes of a proposal.
  private static let proposalsMax = 50
}

/// A conversation in a list.
public struct ListedConversation: Sendable, Hashable, Identifiable {
  /// The id of the conversation.
  public var id: String
  /// The conversation.
  public var conversation: AIConversation

  /// Creates an entry of a list.
  public init(id: String, conversation: AIConversation) {
    self.id = id
    self.conversation = conversation
  }
}
