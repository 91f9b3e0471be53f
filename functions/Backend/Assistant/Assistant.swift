import FirestoreClient
import Logging
import PsstModels
import PsstServices

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An assistant that answers a trainer's questions and acts for the trainer.
///
/// Its answers are based on the messages that the trainer may read.
public struct Assistant: Sendable {
  let firestore: Firestore
  let documents: DocumentReader
  let search: MessageSearch
  private let model: (any ChatModel)?
  let memory: AssistantMemory
  private let actions: AssistantActions
  private let clock: any Clock<Duration>
  private let now: @Sendable () -> Date

  /// The maximum number of search results for a question.
  private static let hitsMax = 20
  /// The time limit of an answer, shorter than the function's timeout.
  private static let timeMax: Duration = .seconds(90)
  /// The maximum length of a question in Unicode scalars.
  public static let questionCharactersMax = 4000
  /// The maximum length of a request's id in bytes.
  public static let requestIDBytesMax = 128

  /// Creates an assistant; `model` is nil if no chat model is configured.
  init(
    firestore: Firestore,
    documents: DocumentReader,
    model: (any ChatModel)?,
    search: MessageSearch,
    clock: any Clock<Duration>,
    now: @escaping @Sendable () -> Date
  ) {
    self.firestore = firestore
    self.documents = documents
    self.model = model
    self.search = search
    self.clock = clock
    self.now = now
    memory = AssistantMemory(firestore: firestore, clock: clock, now: { Self.time(now()) })
    actions = AssistantActions(firestore: firestore, documents: documents, memory: memory)
  }

  /// Answers a question, and reports progress to `onEvent`.
  ///
  /// If the question has a request's id and was answered before, the stored answer is returned
  /// without asking the model. While the model cannot be asked, a question that searches is
  /// answered with the messages found. The answer always includes the actions carried out so far.
  ///
  /// Throws `AnswerError`, `FirestoreError`, and any error that `onEvent` throws. The question can
  /// then be sent again, and no action is repeated.
  public func answer(
    _ question: Question,
    onEvent: @escaping @Sendable (Event) async throws -> Void = { _ in }
  ) async throws -> Answer {
    let deadline = AssistantDeadline(after: Self.timeMax, on: clock)
    let preferences = try await documents.preferences(of: question.uid, in: firestore)
    let caller = AssistantCaller(
      uid: question.uid,
      now: time,
      zone: AssistantZone(preferences.timeZone)
    )
    let beginning = try await memory.begin(
      .init(
        uid: question.uid,
        text: question.text,
        conversationID: question.conversationID,
        requestID: question.requestID
      )
    )
    switch beginning {
    case .unknownConversation: throw AnswerError.unknownConversation
    case .otherQuestion: throw AnswerError.otherQuestion
    case .inProgress(let time): throw AnswerError.inProgress(for: time)
    case .answered(let message, let conversationID):
      let answer = try await stored(message, in: conversationID, for: caller)
      try await onEvent(.text(answer.text))
      return answer
    case .turn(let turn):
      do {
        let answer = try await memory.holding(turn) {
          try await self.answer(question.text, turn, caller, preferences, deadline, onEvent)
        }
        return await ended(turn, with: answer, of: caller)
      } catch is AssistantMemory.ClaimLostError {
        let (standing, claimLeft) = try await memory.state(of: turn)
        guard let standing else { throw AnswerError.inProgress(for: claimLeft) }
        return try await stored(standing, in: turn.conversationID, for: caller)
      } catch {
        await memory.giveUp(turn)
        throw error
      }
    }
  }

  /// Carries out a proposed action at most once, or declines it.
  ///
  /// Throws `ConfirmationError` and `FirestoreError`.
  public func confirm(_ actionID: String, accept: Bool, by uid: String) async throws -> Action {
    let preferences = try await documents.preferences(of: uid, in: firestore)
    let caller = AssistantCaller(
      uid: uid,
      now: time,
      zone: AssistantZone(preferences.timeZone)
    )
    let recorded = try await actions.confirm(actionID, accept: accept, by: caller)
    return Action(id: recorded.id, record: recorded.action)
  }

  /// Proposes a suggested reminder and returns the action's id; nil if none can be proposed.
  ///
  /// The same suggestion has the same id, so its reminder is written at most once. Throws
  /// `FirestoreError`.
  public func propose(
    _ suggestion: QuickActions.Suggestion,
    from messageID: String,
    in chatID: String,
    to uid: String
  ) async throws -> String? {
    guard let text = suggestion.text, let dueDate = suggestion.dueDate else { return nil }
    // The time is absolute, so the zone does not matter.
    let caller = AssistantCaller(uid: uid, now: time, zone: AssistantZone(nil))
    let id = ContentHash.of([uid, chatID, messageID, SetReminder.name, text])
    let command = SetReminder(text: text, dueDate: "\(dueDate)")
    do {
      return try await actions.propose(command, id: id, for: caller).id
    } catch is ActionRefusedError {
      // The caller became a client, or the time has passed since the suggestion.
      return nil
    }
  }

  /// The current time, in microseconds as in documents.
  private var time: Timestamp { Self.time(now()) }

  private static func time(_ date: Date) -> Timestamp {
    Timestamp(microseconds: Int64(date.timeIntervalSince1970 * 1_000_000))
  }

  // MARK: A turn

  private func answer(
    _ question: String,
    _ turn: AssistantMemory.Turn,
    _ caller: AssistantCaller,
    _ preferences: AssistantPreferences,
    _ deadline: AssistantDeadline,
    _ onEvent: @escaping @Sendable (Event) async throws -> Void
  ) async throws -> Answer {
    var caller = caller
    let user = try await firestore.collection(User.collection).document(caller.uid).get()
    caller.isTrainer = documents.read(user, as: User.self)?.value?.effectiveRole == .trainer
    let earlier = try await recorded(turn.actionIDs)
    let found =
      SmallTalk.matches(question)
      ? nil : try await search.search(question, as: caller.uid, limit: Self.hitsMax)
    var context = AssistantContext(
      question: question,
      earlierActions: earlier.map(\.record),
      hits: found?.hits ?? [],
      history: turn.history,
      summary: turn.conversation.summary,
      preferences: preferences,
      caller: caller
    )
    var sources = AssistantSources()
    let offered = sources.add(context.best)
    do {
      guard let model else { throw AnswerError.notConfigured }
      let asking = AssistantModel(model, for: .user(caller.uid), until: deadline, on: clock)
      let summaryUsage = try await summarize(&context, turn, by: asking)
      let asks = ActionRequest(question)
      let people =
        caller.isTrainer
          && (asks.isRequest(for: .call) || asks.isRequest(for: .message) || asks.asksWhoIsThere)
        ? try await AssistantPeople(of: caller.uid, in: firestore, documents) : nil
      let client = people?.client(namedBy: asks)
      if let person = people?.client(mentionedBy: asks) {
        context.presence = try await presence(of: person, for: caller)
      }
      var run = AssistantRun(
        model: asking,
        tools: AssistantTools(
          actions: actions,
          search: search,
          caller: caller,
          turn: turn,
          question: AssistantQuestion(
            asks: asks,
            client: client?.id,
            openChats: preferences.autoSend == true ? Set(client?.chats ?? []) : [],
            wasActedFor: earlier.contains { $0.record.status == .done }
          ),
          people: people,
          sources: sources,
          hasSearchedByWords: found?.failure != nil
        ),
        after: earlier,
        onEvent: onEvent
      )
      var ending = try await run.end(of: AssistantLoop(context.turns(offering: offered)))
      ending.text = run.tools.sources.withoutUnknown(in: ending.text)
      let limitations = [
        ending.limitation, run.tools.hasSearchedByWords ? Self.searchedByWords : nil,
      ]
      .compactMap { $0 }
      return Answer(
        conversationID: turn.conversationID,
        text: ending.text,
        sources: run.tools.sources.cited(in: ending.text),
        actions: run.actions,
        toolCalls: run.toolCalls,
        usage: summaryUsage + run.usage,
        // An answer without text does not come from the model.
        model: ending.text.isEmpty ? nil : model.name,
        limitation: limitations.isEmpty ? nil : limitations.joined(separator: " ")
      )
    } catch let failure as AnswerError where Self.isSearch(question) && !offered.isEmpty {
      return Answer(
        conversationID: turn.conversationID,
        text: "\(failure.note) These messages have words of your question.",
        sources: offered,
        actions: earlier,
        usage: TokenUsage(),
        model: nil,
        limitation: failure.note
      )
    }
  }

  /// Returns the presence of a client; nil for one who was never seen.
  private func presence(
    of client: AssistantPeople.Person,
    for caller: AssistantCaller
  ) async throws -> AssistantContext.Presence? {
    guard client.id.isDocumentID else { return nil }
    let stored = try await firestore.collection(UserPresence.collection).document(client.id).get()
    return documents.read(stored, as: UserPresence.self)?.value.map {
      AssistantContext.Presence($0, of: client.name, caller.zone)
    }
  }

  private static let searchedByWords = "Messages were searched by their words only."

  /// Stores an answer in its conversation and returns the answer that counts.
  ///
  /// If another attempt stored its answer first, that answer is returned. Actions cannot be undone,
  /// so if storing fails, the caller still gets the answer, with a note that it is not stored.
  private func ended(
    _ turn: AssistantMemory.Turn,
    with answer: Answer,
    of caller: AssistantCaller
  ) async -> Answer {
    let message = AIMessage(
      role: .assistant,
      content: answer.text,
      timestamp: max(time, Timestamp(microseconds: turn.time.microseconds + 1)),
      turnId: turn.id,
      answer: AIAnswer(answer)
    )
    var answer = answer
    do {
      let standing = try await memory.end(turn, with: message)
      var own = message
      own.answer?.actionIds = standing.answer?.actionIds ?? []
      guard standing == own else {
        return try await stored(standing, in: turn.conversationID, for: caller)
      }
      if message.answer?.actionIds != own.answer?.actionIds {
        // This attempt got no confirmation for a commit that did succeed.
        answer.actions = try await recorded(own.answer?.actionIds ?? [])
      }
      return answer
    } catch {
      Logger.current.warning("An answer could not be stored", metadata: ["reason": "\(error)"])
      await memory.giveUp(turn)
      let note = "The answer could not be stored in the conversation."
      answer.limitation = answer.limitation.map { "\($0) \(note)" } ?? note
      return answer
    }
  }

  /// A stored answer, with those of its sources that the caller may still read.
  private func stored(
    _ message: AIMessage,
    in conversationID: String,
    for caller: AssistantCaller
  ) async throws -> Answer {
    let stored = message.answer
    let sources = (stored?.sources ?? []).filter {
      $0.chatId.isDocumentID && $0.messageId.isDocumentID
    }
    let places = sources.map { source in
      (MessagePlace(chatID: source.chatId, messageID: source.messageId), source.score)
    }
    let hits = try await search.messages(at: places, as: caller.uid)
    let readable = Dictionary(
      hits.map { (MessagePlace(chatID: $0.chatID, messageID: $0.messageID), $0) }
    ) { $1 }
    return Answer(
      conversationID: conversationID,
      text: message.content,
      sources: sources.compactMap { source in
        readable[MessagePlace(chatID: source.chatId, messageID: source.messageId)]
          .map { Source(number: source.number, hit: $0) }
      },
      actions: try await recorded(stored?.actionIds ?? []),
      toolCalls: stored?.toolCalls ?? [],
      usage: TokenUsage(
        promptTokens: stored?.promptTokens ?? 0,
        completionTokens: stored?.completionTokens ?? 0
      ),
      model: stored?.model,
      limitation: stored?.note
    )
  }

  private func recorded(_ actionIDs: [String]) async throws -> [Action] {
    try await actions.recorded(actionIDs).map { Action(id: $0.id, record: $0.action) }
  }

  /// Returns true if a search for messages can answer the question.
  private static func isSearch(_ question: String) -> Bool {
    let beginning = question.lowercased().split { !$0.isLetter }.first.map(String.init) ?? ""
    return question.contains("?") || question.contains("？") || searchWords.contains(beginning)
  }

  private static let searchWords: Set<String> = [
    "find", "search", "show", "list", "who", "which", "what", "when", "where", "did", "has", "have",
    "finde", "suche", "zeige", "wer", "welche", "was", "wann", "wo", "hat",
  ]
}

extension AIAnswer {
  /// Creates the stored form of an answer.
  fileprivate init(_ answer: Assistant.Answer) {
    self.init(
      sources: answer.sources.map { source in
        Source(
          number: source.number,
          chatId: source.hit.chatID,
          messageId: source.hit.messageID,
          score: source.hit.score
        )
      },
      actionIds: answer.actions.map(\.id),
      toolCalls: answer.toolCalls.isEmpty ? nil : answer.toolCalls,
      promptTokens: answer.usage.promptTokens,
      completionTokens: answer.usage.completionTokens,
      model: answer.model,
      note: answer.limitation
    )
  }
}
