import FirestoreClient
import Logging
import PsstModels

/// The conversations of users with the assistant, as they are stored.
///
/// A question is stored before it is answered, and its answer after it. While it is being answered,
/// the question is claimed, so that the same question sent again meanwhile is not answered twice; a
/// question without an answer can be sent again and continues its turn.
struct AssistantMemory: Sendable {
  let firestore: Firestore

  /// The latest messages that are read; older ones are in the summary.
  private static let messagesMax = 60
  /// The time within which an unanswered question that is sent again is the same one.
  private static let repetitionTime: Int64 = 600_000_000
  /// How long an attempt to answer has a question for itself: longer than most answers take.
  ///
  /// After it the question can be answered by another attempt, because this one may have been
  /// killed. Should both be at it, each action is done once and the first answer stands.
  private static let claimTime: Int64 = 30_000_000

  /// A question as it arrives.
  struct Question: Sendable {
    var uid: String
    var text: String
    /// The conversation that goes on; nil begins one.
    var conversationID: String?
    /// The client's id for this question; the same when it is sent again.
    var requestID: String?
    var time: Timestamp
  }

  /// A question that is being answered.
  struct Turn: Sendable {
    var uid: String
    var conversationID: String
    /// The same for a question that is sent again.
    var id: String
    /// What was said before, each question followed by its answer.
    var history: [AIMessage]
    var conversation: AIConversation
    /// Until when this attempt has the question for itself.
    var claimedUntil: Timestamp
  }

  /// What a question meets.
  enum Beginning: Sendable {
    /// It is to be answered.
    case turn(Turn)
    /// It was answered before, with this message.
    case answered(AIMessage, conversationID: String)
    /// It is being answered until this time at most.
    case inProgress(until: Timestamp)
    /// The user has no such conversation.
    case unknownConversation
    /// The request's id belongs to a question with other words.
    case otherQuestion
  }

  private func conversations(of uid: String) -> CollectionReference {
    firestore.collection(User.collection).document(uid).collection(AIConversation.collection)
  }

  private func messages(of turn: Turn) -> CollectionReference {
    conversations(of: turn.uid).document(turn.conversationID).collection(AIMessage.collection)
  }

  private static func questionID(_ turnID: String) -> String { "\(turnID)-question" }
  private static func answerID(_ turnID: String) -> String { "\(turnID)-answer" }

  /// Begins a turn, or continues one that has no answer, and claims its question.
  ///
  /// A question with a request's id begins the conversation of that id unless another one is named,
  /// so that it finds its turn again although its answer never arrived. Throws `FirestoreError`.
  func begin(_ question: Question) async throws -> Beginning {
    if let id = question.conversationID, !id.isDocumentID { return .unknownConversation }
    let conversations = conversations(of: question.uid)
    let reference =
      (question.conversationID ?? question.requestID).map { conversations.document($0) }
      ?? conversations.document()
    let messages = reference.collection(AIMessage.collection)
    let latest = messages.query.order(by: "timestamp", descending: true).limit(Self.messagesMax)
    return try await firestore.runTransaction { transaction in
      let stored = try await transaction.get(reference)
      guard stored.exists || question.conversationID == nil else { return .unknownConversation }
      let conversation =
        try stored.exists ? stored.data(as: Lenient<AIConversation>.self).value : nil
      let said =
        try await transaction.get(latest)
        .compactMap { try $0.data(as: Lenient<AIMessage>.self).value }
        .reversed() as [AIMessage]
      let turns = Self.turns(said)
      let earlier = try await earlier(question, among: turns, in: messages, transaction)
      if let earlier {
        guard earlier.question.content == question.text else { return .otherQuestion }
        if let answer = earlier.answer {
          return .answered(answer, conversationID: reference.id)
        }
        if let until = earlier.question.claimedUntil, until > question.time {
          return .inProgress(until: until)
        }
      }
      let turn = Turn(
        uid: question.uid,
        conversationID: reference.id,
        id: earlier?.question.turnId ?? question.requestID ?? messages.document().id,
        history: turns.flatMap { turn -> [AIMessage] in
          guard let answer = turn.answer else { return [] }
          let isSummarized = conversation?.summarizedUntil.map { answer.timestamp <= $0 } ?? false
          return isSummarized ? [] : [turn.question, answer]
        },
        conversation: conversation
          ?? AIConversation(createdAt: question.time, updatedAt: question.time),
        claimedUntil: Timestamp(microseconds: question.time.microseconds + Self.claimTime)
      )
      if stored.exists {
        try transaction.update(reference, ["updatedAt": .value(question.time)])
      } else {
        try transaction.set(reference, turn.conversation)
      }
      try transaction.set(
        messages.document(Self.questionID(turn.id)),
        AIMessage(
          role: .user,
          content: question.text,
          timestamp: question.time,
          turnId: turn.id,
          claimedUntil: turn.claimedUntil
        )
      )
      return .turn(turn)
    }
  }

  private typealias StoredTurn = (question: AIMessage, answer: AIMessage?)

  /// The turns of a conversation, in the order of their questions.
  private static func turns(_ said: [AIMessage]) -> [StoredTurn] {
    let answers = said.filter { $0.role == .assistant }
    let answerOfTurn = Dictionary(answers.map { ($0.turnId, $0) }) { $1 }
    return said.filter { $0.role == .user }.map { ($0, answerOfTurn[$0.turnId]) }
  }

  /// The turn that a question continues, because it was sent before; nil for a new question.
  private func earlier(
    _ question: Question,
    among turns: [StoredTurn],
    in messages: CollectionReference,
    _ transaction: Transaction
  ) async throws -> StoredTurn? {
    guard let id = question.requestID else {
      return turns.last { turn in
        turn.answer == nil && turn.question.content == question.text
          && question.time.microseconds - turn.question.timestamp.microseconds
            < Self.repetitionTime
      }
    }
    let stored = try await transaction.getAll(
      [Self.questionID(id), Self.answerID(id)].map { messages.document($0) }
    )
    let both = try stored.map { snapshot in
      try snapshot.exists ? snapshot.data(as: Lenient<AIMessage>.self).value : nil
    }
    return both[0].map { ($0, both[1]) }
  }

  /// Stores the answer of a turn, and returns the one that stands: the first.
  ///
  /// Throws `FirestoreError`.
  func end(_ turn: Turn, with answer: AIMessage) async throws -> AIMessage {
    let messages = messages(of: turn)
    let reference = messages.document(Self.answerID(turn.id))
    return try await firestore.runTransaction { transaction in
      let stored = try await transaction.get(reference)
      if stored.exists { return try stored.data() }
      try transaction.set(reference, answer)
      try transaction.update(
        messages.document(Self.questionID(turn.id)),
        ["claimedUntil": .delete]
      )
      try transaction.update(
        conversations(of: turn.uid).document(turn.conversationID),
        ["updatedAt": .value(answer.timestamp)]
      )
      return answer
    }
  }

  /// Gives up a turn, so that its question can be sent again at once.
  ///
  /// Where that fails, the claim ends by itself.
  func giveUp(_ turn: Turn) async {
    let reference = messages(of: turn).document(Self.questionID(turn.id))
    // A separate task also gives up the turn of a cancelled call; its requests have timeouts.
    await Task {
      do {
        try await firestore.runTransaction { transaction in
          let stored = try await transaction.get(reference)
          guard stored.exists,
            try stored.data(as: Lenient<AIMessage>.self).value?.claimedUntil == turn.claimedUntil
          else { return }
          try transaction.update(reference, ["claimedUntil": .delete])
        }
      } catch {
        Logger.current.warning(
          "A question stays claimed until its time is over",
          metadata: ["reason": "\(error)"]
        )
      }
    }.value
  }

  /// Stores what the messages up to a time were about.
  ///
  /// Throws `FirestoreError`.
  func summarize(_ turn: Turn, as summary: String, until time: Timestamp) async throws {
    try await conversations(of: turn.uid).document(turn.conversationID)
      .update(["summary": .value(summary), "summarizedUntil": .value(time)])
  }
}
