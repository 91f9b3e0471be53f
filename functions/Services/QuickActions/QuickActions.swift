import FirestoreClient
import PsstModels

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What the app offers about a chat or a message without a question.
///
/// Who may not read the chat now learns nothing of it, whatever is cached. People's words reach the
/// model as data inside JSON, there are no tools, and nothing but answers is written.
public struct QuickActions: Sendable {
  let firestore: Firestore
  let documents: DocumentReader
  let model: (any ChatModel)?
  let search: MessageSearch
  let summaries = AnswerCache<SummaryAnswer>()
  let suggestions = AnswerCache<SuggestionAnswer>()
  private let now: @Sendable () -> Date

  /// The longest name; names serve only to tell people apart.
  static let nameBytesMax = 100
  /// Where a chat's answers are kept, below it; no rule lets a client read them.
  static let collection = "answers"

  /// Quick actions over a database, without a model where none is configured.
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

  /// The time now, in microseconds as documents have it.
  var time: Timestamp {
    Timestamp(microseconds: Int64(now().timeIntervalSince1970 * 1_000_000))
  }

  // MARK: What may be read

  /// A chat of the caller; throws `QuickActionError.unknown` when it is not theirs now.
  func chat(_ chatID: String, of uid: String) async throws -> (DocumentReference, Chat) {
    guard chatID.isDocumentID else { throw QuickActionError.unknown }
    let reference = firestore.collection(Chat.collection).document(chatID)
    guard let chat = documents.read(try await reference.get(), as: Chat.self)?.value,
      chat.members.contains(uid)
    else { throw QuickActionError.unknown }
    return (reference, chat)
  }

  /// A message of a chat; throws `QuickActionError.unknown` when there is none that can be read.
  func message(_ messageID: String, in chat: DocumentReference) async throws -> Message {
    guard messageID.isDocumentID else { throw QuickActionError.unknown }
    let reference = chat.collection(Message.collection).document(messageID)
    guard let message = documents.read(try await reference.get(), as: Message.self)?.value else {
      throw QuickActionError.unknown
    }
    return message
  }

  /// Asks the model, or the cache; throws `Assistant.Failure` when neither has an answer.
  func answer<Output>(
    from cache: AnswerCache<Output>,
    _ messages: [ChatMessage],
    as schema: JSONSchema,
    keptIn document: DocumentReference,
    for uid: String
  ) async throws -> (answer: AnswerCache<Output>.Answer, model: String) {
    guard let model else { throw Assistant.Failure.notConfigured }
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
      throw Assistant.Failure.unavailable(error)
    }
  }
}

/// Why a quick action is not for its caller.
public enum QuickActionError: Error, Sendable, Hashable {
  /// There is no such chat, or no such message, that the caller may read.
  case unknown
  /// The caller is no trainer.
  case notTrainer
}
