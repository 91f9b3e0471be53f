import FirestoreClient
import Logging
import PsstModels

/// The stored conversations of users with the assistant.
///
/// A question is stored before it is answered, and its answer afterwards. The attempt that answers
/// a question holds a claim on it and renews the claim. An attempt that has lost its claim makes no
/// more changes. A question without an answer can be sent again. It then continues its turn, with
/// the actions that earlier attempts recorded.
struct AssistantMemory: Sendable {
  let firestore: Firestore
  let clock: any Clock<Duration>
  let now: @Sendable () -> Timestamp

  /// The number of latest answers that are read; the summary covers older ones.
  private static let answersMax = 30
  /// The number of latest questions that are searched for an unanswered one.
  private static let questionsMax = 10
  /// The time within which a repeated question continues its unanswered turn, in microseconds.
  private static let repetitionTime: Int64 = 600_000_000
  /// The duration of a claim without renewal, in microseconds.
  ///
  /// It is also the time for which a killed attempt blocks its question.
  private static let claimTime: Int64 = 30_000_000
  /// The interval between renewals of a claim.
  private static let renewalInterval: Duration = .seconds(10)

  /// A question as it arrives from the client.
  struct Question: Sendable {
    var uid: String
    var text: String
    /// The id of the conversation to continue; a new conversation begins if nil.
    var conversationID: String?
    /// The client's id for this question, the same each time it is sent.
    var requestID: String?
  }

  /// A question that is being answered.
  struct Turn: Sendable {
    var uid: String
    var conversationID: String
    /// The id of the turn, the same each time the question is sent.
    var id: String
    /// The id of the attempt that holds the claim.
    var attemptID: String
    /// The time of the question.
    var time: Timestamp
    /// The earlier messages, each question followed by its answer.
    var history: [AIMessage]
    var conversation: AIConversation
    /// The ids of the actions that earlier attempts recorded, in order.
    var actionIDs: [String]
  }

  /// The result of beginning a question.
  enum Beginning: Sendable {
    /// The question must be answered.
    case turn(Turn)
    /// The question was answered before, with this message.
    case answered(AIMessage, conversationID: String)
    /// Another attempt is answering the question. Its claim lasts this long without renewal.
    case inProgress(for: Duration)
    /// The user has no conversation with the given id.
    case unknownConversation
    /// The request's id belongs to a question with other words.
    case otherQuestion
  }

  /// The error thrown if another attempt has claimed or answered the question.
  struct ClaimLostError: Error {}

  // MARK: Document references

  private func conversations(of uid: String) -> CollectionReference {
    firestore.collection(User.collection).document(uid).collection(AIConversation.collection)
  }

  private func messages(of turn: Turn) -> CollectionReference {
    conversations(of: turn.uid).document(turn.conversationID).collection(AIMessage.collection)
  }

  private func question(of turn: Turn) -> DocumentReference {
    messages(of: turn).document(Self.questionID(turn.id))
  }

  private func answer(of turn: Turn) -> DocumentReference {
    messages(of: turn).document(Self.answerID(turn.id))
  }

  private static func questionID(_ turnID: String) -> String { "\(turnID)-question" }
  private static func answerID(_ turnID: String) -> String { "\(turnID)-answer" }

  // MARK: Beginning

  /// Begins a turn, or continues one without an answer, and claims its question.
  ///
  /// Unless a conversation is given, a question with a request's id uses that id for its
  /// conversation, so a repeated question finds its turn even if the first answer never arrived.
  /// Throws `FirestoreError`.
  func begin(_ question: Question) async throws -> Beginning {
    if let id = question.conversationID, !id.isDocumentID { return .unknownConversation }
    let conversations = conversations(of: question.uid)
    let reference =
      (question.conversationID ?? question.requestID).map { conversations.document($0) }
      ?? conversations.document()
    let messages = reference.collection(AIMessage.collection)
    let time = now()
    return try await firestore.runTransaction { transaction in
      let stored = try await transaction.get(reference)
      guard stored.exists || question.conversationID == nil else { return .unknownConversation }
      let known =
        try stored.exists ? stored.data(as: Lenient<AIConversation>.self).value : nil
      // A new conversation has no messages to look for.
      let earlier =
        stored.exists ? try await earlier(question, at: time, in: messages, transaction) : .new
      switch earlier {
      case .answered(let answer):
        return .answered(answer, conversationID: reference.id)
      case .otherQuestion:
        return .otherQuestion
      case .open(let asked):
        if let left = Self.claimLeft(asked, at: time) { return .inProgress(for: left) }
      case .new: break
      }
      let asked = earlier.question
      let turn = Turn(
        uid: question.uid,
        conversationID: reference.id,
        id: asked?.turnId ?? question.requestID ?? messages.document().id,
        attemptID: messages.document().id,
        time: time,
        history: stored.exists
          ? try await history(after: known?.summarizedUntil, at: time, messages, transaction) : [],
        conversation: known ?? AIConversation(createdAt: time, updatedAt: time),
        actionIDs: (asked?.actionIds ?? []).filter(\.isDocumentID)
      )
      if known == nil {
        try transaction.set(reference, turn.conversation)
      } else {
        try transaction.update(reference, ["updatedAt": .value(time)])
      }
      try transaction.set(
        messages.document(Self.questionID(turn.id)),
        AIMessage(
          role: .user,
          content: question.text,
          timestamp: time,
          turnId: turn.id,
          claim: AIClaim(attemptId: turn.attemptID, until: Self.claimEnd(from: time)),
          actionIds: turn.actionIDs.isEmpty ? nil : turn.actionIDs
        )
      )
      return .turn(turn)
    }
  }

  /// The stored state of a question that may have been sent before.
  private enum Earlier {
    case new, otherQuestion
    case open(AIMessage)
    case answered(AIMessage)

    var question: AIMessage? { if case .open(let asked) = self { asked } else { nil } }
  }

  private func earlier(
    _ question: Question,
    at time: Timestamp,
    in messages: CollectionReference,
    _ transaction: Transaction
  ) async throws -> Earlier {
    if let id = question.requestID {
      let both = try await transaction.getAll(
        [Self.questionID(id), Self.answerID(id)].map { messages.document($0) }
      )
      guard both[0].exists else { return .new }
      guard let asked = try Self.message(both[0]), asked.content == question.text else {
        return .otherQuestion
      }
      return try Self.message(both[1]).flatMap { $0.isFinal ? .answered($0) : nil } ?? .open(asked)
    }
    let latest = try await transaction.get(
      messages.where("role", .equal, AIMessage.Role.user.rawValue)
        .order(by: "timestamp", descending: true).limit(Self.questionsMax)
    )
    let same = try latest.compactMap(Self.message).filter { asked in
      asked.content == question.text
        && time.microseconds - asked.timestamp.microseconds < Self.repetitionTime
    }
    let answers = try await transaction.getAll(
      same.map { messages.document(Self.answerID($0.turnId)) }
    )
    let open = try zip(same, answers).first { try Self.message($1)?.isFinal != true }
    return open.map { .open($0.0) } ?? .new
  }

  /// The latest turns that a model answered, each question before its answer.
  ///
  /// `summarized` is ignored if it is in the future, because the clock was set back since.
  private func history(
    after summarized: Timestamp?,
    at time: Timestamp,
    _ messages: CollectionReference,
    _ transaction: Transaction
  ) async throws -> [AIMessage] {
    let answers = try await transaction.get(
      messages.where("role", .equal, AIMessage.Role.assistant.rawValue)
        .order(by: "timestamp", descending: true).limit(Self.answersMax)
    )
    .compactMap(Self.message).filter(\.isFinal)
    let questions = try await transaction.getAll(
      answers.map { messages.document(Self.questionID($0.turnId)) }
    )
    let turns = try zip(questions, answers).compactMap { question, answer in
      try Self.message(question).map { (question: $0, answer: answer) }
    }
    return turns.filter { turn in
      guard let summarized, summarized <= time else { return true }
      return turn.question.timestamp > summarized
    }
    .sorted {
      ($0.question.timestamp, $0.question.turnId) < ($1.question.timestamp, $1.question.turnId)
    }
    .flatMap { [$0.question, $0.answer] }
  }

  /// Decodes a stored message; nil if it does not exist or cannot be read.
  private static func message(_ snapshot: DocumentSnapshot) throws -> AIMessage? {
    guard snapshot.exists, let message = try snapshot.data(as: Lenient<AIMessage>.self).value,
      questionID(message.turnId).isDocumentID
    else { return nil }
    return message
  }

  // MARK: The claim

  private static func claimEnd(from time: Timestamp) -> Timestamp {
    Timestamp(microseconds: time.microseconds + claimTime)
  }

  /// The remaining time of a claim on a question; nil if there is no valid claim.
  ///
  /// A claim that would last longer than a new one is ignored, because the clock was set back
  /// since.
  private static func claimLeft(_ asked: AIMessage, at time: Timestamp) -> Duration? {
    guard let until = asked.claim?.until else { return nil }
    let left = until.microseconds - time.microseconds
    return (1...claimTime).contains(left) ? .microseconds(left) : nil
  }

  /// Runs the work of a turn while renewing its claim.
  ///
  /// Throws `ClaimLostError` if another attempt has claimed the question, and any error of the
  /// work. The work is then cancelled.
  func holding<Output: Sendable>(
    _ turn: Turn,
    _ work: @escaping @Sendable () async throws -> Output
  ) async throws -> Output {
    try await withThrowingTaskGroup(of: Output?.self) { group in
      group.addTask { try await work() }
      group.addTask {
        while true {
          try await clock.sleep(for: Self.renewalInterval)
          try await renew(turn)
        }
      }
      defer { group.cancelAll() }
      guard let output = try await group.next() ?? nil else { throw CancellationError() }
      return output
    }
  }

  private func renew(_ turn: Turn) async throws {
    do {
      try await firestore.runTransaction { transaction in
        try await check(turn, transaction)
        try transaction.update(
          question(of: turn),
          ["claim.until": .value(Self.claimEnd(from: now()))]
        )
      }
    } catch let error as FirestoreError {
      // The next renewal may still be in time.
      Logger.current.warning("A claim was not renewed", metadata: ["reason": "\(error)"])
    }
  }

  /// Checks in a transaction that an attempt still holds its claim.
  ///
  /// Throws `ClaimLostError` and `FirestoreError`.
  func check(_ turn: Turn, _ transaction: Transaction) async throws {
    let both = try await transaction.getAll([question(of: turn), answer(of: turn)])
    guard try Self.message(both[0])?.claim?.attemptId == turn.attemptID,
      try Self.message(both[1])?.isFinal != true
    else { throw ClaimLostError() }
  }

  /// Records an action of a turn.
  ///
  /// Call it after `check`, in the transaction that carries out the action.
  func add(_ actionID: String, to turn: Turn, _ transaction: Transaction) throws {
    try transaction.update(question(of: turn), ["actionIds": .arrayUnion(actionID)])
  }

  // MARK: The end

  /// Stores the answer of a turn and returns the answer that counts.
  ///
  /// The first answer of a model counts. It includes all actions that the turn's attempts recorded.
  /// Throws `FirestoreError`.
  func end(_ turn: Turn, with answer: AIMessage) async throws -> AIMessage {
    try await firestore.runTransaction { transaction in
      let both = try await transaction.getAll([self.question(of: turn), self.answer(of: turn)])
      if let stored = try Self.message(both[1]), stored.isFinal { return stored }
      var answer = answer
      if let actionIDs = try Self.message(both[0])?.actionIds {
        answer.answer?.actionIds = actionIDs
      }
      try transaction.set(self.answer(of: turn), answer)
      if both[0].exists { try transaction.update(question(of: turn), ["claim": .delete]) }
      try transaction.update(
        conversations(of: turn.uid).document(turn.conversationID),
        ["updatedAt": .value(answer.timestamp)]
      )
      return answer
    }
  }

  /// The answer that another attempt gave to a turn, and the remaining time of its claim.
  ///
  /// The answer is nil if there is none yet. The time is a second where no attempt has a claim.
  /// Throws `FirestoreError`.
  func state(of turn: Turn) async throws -> (answer: AIMessage?, claimLeft: Duration) {
    let both = try await firestore.getAll([question(of: turn), answer(of: turn)])
    let answer = try Self.message(both[1]).flatMap { $0.isFinal ? $0 : nil }
    let left = try Self.message(both[0]).flatMap { Self.claimLeft($0, at: now()) }
    return (answer, left ?? .seconds(1))
  }

  /// Releases the claim of a turn, so that its question can be sent again at once.
  ///
  /// If that fails, the claim expires.
  func giveUp(_ turn: Turn) async {
    // A separate task also releases the claim of a cancelled call; its requests have timeouts.
    await Task {
      do {
        try await firestore.runTransaction { transaction in
          try await check(turn, transaction)
          try transaction.update(question(of: turn), ["claim": .delete])
        }
      } catch is ClaimLostError {
        // The claim belongs to another attempt.
      } catch {
        Logger.current.warning(
          "A question stays claimed until its time is over",
          metadata: ["reason": "\(error)"]
        )
      }
    }.value
  }

  // MARK: The summary

  /// Stores a summary of the turns up to a question, unless a later summary is stored.
  ///
  /// Throws `FirestoreError`.
  func summarize(_ turn: Turn, as summary: String, until time: Timestamp) async throws {
    let reference = conversations(of: turn.uid).document(turn.conversationID)
    try await firestore.runTransaction { transaction in
      let stored = try await transaction.get(reference)
      let known = try stored.exists ? stored.data(as: Lenient<AIConversation>.self).value : nil
      if let until = known?.summarizedUntil, until >= time, until <= now() { return }
      try transaction.update(
        reference,
        [
          "summary": .value(summary), "summarizedUntil": .value(time),
          "noSummaryBefore": .delete,
        ]
      )
    }
  }

  /// Records a failed summary, so that the next questions do not pay for another attempt.
  ///
  /// Throws `FirestoreError`.
  func summaryFailed(_ turn: Turn, noneBefore time: Timestamp) async throws {
    try await conversations(of: turn.uid).document(turn.conversationID)
      .update(["noSummaryBefore": .value(time)])
  }
}

extension AIMessage {
  /// True if the answer is final.
  ///
  /// An answer that does not come from a model is replaced when its question is sent again.
  fileprivate var isFinal: Bool { answer?.model != nil }
}
