import FirestoreClient
import PsstModels

/// The conversations of users with the assistant, as they are stored.
///
/// A question is stored before it is answered, and its answer after it: a question that is asked
/// again because its answer was lost continues the same turn.
struct AssistantMemory: Sendable {
  let firestore: Firestore

  /// The latest turns that are read; older ones are in the summary.
  private static let messagesMax = 60
  /// The time within which an unanswered question that is asked again is the same one.
  private static let repetitionTime: Int64 = 600_000_000

  /// A question that is being answered.
  struct Turn: Sendable {
    var conversationID: String
    /// The same for a question that is asked again.
    var id: String
    /// What was said before, in order.
    var history: [AIMessage]
    var conversation: AIConversation
  }

  private func conversations(of uid: String) -> CollectionReference {
    firestore.collection(User.collection).document(uid).collection(AIConversation.collection)
  }

  /// Begins a turn of a conversation, a new one unless given; nil when the user has no such one.
  ///
  /// Throws `FirestoreError`.
  func begin(
    _ question: String,
    in conversationID: String?,
    of uid: String,
    at now: Timestamp
  ) async throws -> Turn? {
    if let conversationID, !conversationID.isDocumentID { return nil }
    let conversations = conversations(of: uid)
    let reference = conversationID.map { conversations.document($0) } ?? conversations.document()
    let messages = reference.collection(AIMessage.collection)
    let latest = messages.query.order(by: "timestamp", descending: true).limit(Self.messagesMax)
    return try await firestore.runTransaction { transaction in
      let stored = try await transaction.get(reference)
      guard stored.exists || conversationID == nil else { return nil }
      var conversation =
        stored.exists
        ? try stored.data(as: Lenient<AIConversation>.self).value : nil
      conversation = conversation ?? AIConversation(createdAt: now, updatedAt: now)
      guard let conversation else { return nil }
      var history =
        try await transaction.get(latest)
        .compactMap { try $0.data(as: Lenient<AIMessage>.self).value }
        .reversed() as [AIMessage]
      var turnID = messages.document().id
      if let last = history.last, last.role == .user, last.content == question,
        now.microseconds - last.timestamp.microseconds < Self.repetitionTime
      {
        turnID = last.turnId
        history.removeLast()
      }
      let asked = AIMessage(role: .user, content: question, timestamp: now, turnId: turnID)
      if stored.exists {
        try transaction.update(reference, ["updatedAt": .value(now)])
      } else {
        try transaction.set(reference, conversation)
      }
      try transaction.set(messages.document("\(turnID)-question"), asked)
      if let until = conversation.summarizedUntil { history.removeAll { $0.timestamp <= until } }
      return Turn(
        conversationID: reference.id,
        id: turnID,
        history: history,
        conversation: conversation
      )
    }
  }

  /// Stores the answer of a turn.
  func end(_ turn: Turn, with answer: AIMessage, of uid: String) async throws {
    let reference = conversations(of: uid).document(turn.conversationID)
    var batch = firestore.batch()
    try batch.set(
      reference.collection(AIMessage.collection).document("\(turn.id)-answer"),
      answer
    )
    try batch.update(reference, ["updatedAt": .value(answer.timestamp)])
    try await batch.commit()
  }

  /// Stores what the turns up to a time were about.
  func summarize(
    _ turn: Turn,
    as summary: String,
    until time: Timestamp,
    of uid: String
  ) async throws {
    try await conversations(of: uid).document(turn.conversationID)
      .update(["summary": .value(summary), "summarizedUntil": .value(time)])
  }
}
