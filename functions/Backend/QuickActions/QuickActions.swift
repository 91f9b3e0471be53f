import FirestoreClient
import PsstModels
import PsstServices

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The actions on a chat or a message that need no question.
///
/// A caller who may not read the chat now learns nothing about it, even if an answer is cached.
/// People's texts are sent to the model as data in JSON, the model has no tools, and only answers
/// are written.
public struct QuickActions: Sendable {
  let firestore: Firestore
  let documents: DocumentReader
  let model: (any ChatModel)?
  let search: MessageSearch
  let summaries = AnswerCache<SummaryAnswer>()
  let suggestions = AnswerCache<SuggestionAnswer>()
  private let now: @Sendable () -> Date

  /// The most bytes of a name, which is only needed to tell people apart.
  static let nameBytesMax = 100
  /// The name of the collection, below a chat, of cached answers.
  ///
  /// No security rule lets a client read them.
  static let collection = "answers"

  /// Creates quick actions; `model` is nil if no chat model is configured.
  init(
    firestore: Firestore,
    documents: DocumentReader,
    model: (any ChatModel)?,
    search: MessageSearch,
    now: @escaping @Sendable () -> Date
  ) {
    self.firestore = firestore
    self.documents = documents
    self.model = model
    self.search = search
    self.now = now
  }

  /// The current time, in microseconds as in documents.
  var time: Timestamp {
    Timestamp(microseconds: Int64(now().timeIntervalSince1970 * 1_000_000))
  }

  // MARK: Access

  /// Reads a chat.
  ///
  /// Throws `QuickActionError.unknown` if the user is not a member now or the chat cannot be read.
  func chat(_ chatID: String, of uid: String) async throws -> (DocumentReference, Chat) {
    guard chatID.isDocumentID else { throw QuickActionError.unknown }
    let reference = firestore.collection(Chat.collection).document(chatID)
    guard let chat = documents.read(try await reference.get(), as: Chat.self)?.value,
      chat.members.contains(uid)
    else { throw QuickActionError.unknown }
    return (reference, chat)
  }

  /// Reads a message of a chat.
  ///
  /// Throws `QuickActionError.unknown` if it does not exist or cannot be read.
  func message(_ messageID: String, in chat: DocumentReference) async throws -> Message {
    guard messageID.isDocumentID else { throw QuickActionError.unknown }
    let reference = chat.collection(Message.collection).document(messageID)
    guard let message = documents.read(try await reference.get(), as: Message.self)?.value else {
      throw QuickActionError.unknown
    }
    return message
  }

  /// Returns an answer from the cache or the model.
  ///
  /// Throws `Assistant.AnswerError` if neither has an answer, and `FirestoreError`.
  func answer<Output>(
    from cache: AnswerCache<Output>,
    _ messages: [ChatMessage],
    as schema: JSONSchema,
    keptIn document: DocumentReference,
    for uid: String
  ) async throws -> (answer: AnswerCache<Output>.Answer, model: String) {
    guard let model else { throw Assistant.AnswerError.notConfigured }
    do {
      let answer = try await cache.answer(
        to: messages,
        as: schema,
        keptIn: document,
        by: model,
        for: .user(uid)
      )
      return (answer, model.name)
    } catch let error as ServiceError {
      throw Assistant.AnswerError.unavailable(error)
    }
  }
}

/// The reason that a quick action is not available to its caller.
public enum QuickActionError: Error, Sendable, Hashable {
  /// The caller may read no chat or message with the given id.
  case unknown
  /// The caller is not a trainer.
  case notTrainer
}
