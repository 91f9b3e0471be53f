import FirestoreClient
import PsstModels

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The tools that an assistant has for one question.
///
/// Whatever the model calls, a tool has only the caller's rights: it does nothing that the caller
/// could not do, and finds nothing that the caller could not read.
struct AssistantTools: Sendable {
  let actions: AssistantActions
  let search: MessageSearch
  let caller: AssistantCaller
  let turn: AssistantMemory.Turn
  /// The question, and the actions that may be taken for it at once.
  private(set) var question: AssistantQuestion
  /// The messages that the answer can be based on, including those of searches.
  private(set) var sources: AssistantSources
  /// True if a search behind the answer was by words, because the search by meaning failed.
  private(set) var hasSearchedByWords: Bool
  /// The people of the caller; nil until they are needed.
  private var people: AssistantPeople?
  /// The actions that this attempt recorded, by their commands.
  private var made: [Made: AssistantActions.Recorded] = [:]
  /// The number of positions that this attempt has used, by tool.
  private var ordinals: [String: Int] = [:]

  private struct Made: Hashable {
    var tool: String
    var parameters: [String: String]
  }

  init(
    actions: AssistantActions,
    search: MessageSearch,
    caller: AssistantCaller,
    turn: AssistantMemory.Turn,
    question: AssistantQuestion,
    people: AssistantPeople?,
    sources: AssistantSources,
    hasSearchedByWords: Bool
  ) {
    self.actions = actions
    self.search = search
    self.caller = caller
    self.turn = turn
    self.question = question
    self.people = people
    self.sources = sources
    self.hasSearchedByWords = hasSearchedByWords
  }

  /// The maximum number of messages in a search's result for the model.
  private static let hitsMax = 10

  /// The outcome of a tool call.
  struct Outcome: Sendable {
    var result: ToolResult
    /// The action done, proposed or refused; nil for a tool that only reads.
    var action: AssistantActions.Recorded?
  }

  /// The tools that only read, for trainers.
  private static let reading: [any AssistantTool.Type] = [
    FindClients.self, GetProfile.self, GetCalendar.self, GetReminders.self,
  ]

  /// The descriptions of the caller's tools for the model; a client can only search.
  func descriptions() throws -> [ToolDescription] {
    let others = caller.isTrainer ? Self.reading + AssistantActions.commands : []
    return try ([SearchMessages.self] + others).map { try Self.describe($0) }
  }

  private static func describe<Tool: AssistantTool>(_ tool: Tool.Type) throws -> ToolDescription {
    ToolDescription(
      name: tool.name,
      summary: tool.summary,
      input: try JSONType(of: Tool.Arguments.self, descriptions: tool.descriptions)
    )
  }

  /// Calls a tool; an invalid call produces an error as its result.
  ///
  /// Throws `FirestoreError` and `AssistantMemory.ClaimLostError`.
  mutating func call(_ call: ToolCall) async throws -> Outcome {
    do {
      switch call.name {
      case SearchMessages.name:
        return try await found(try Self.decode(SearchMessages.self, call.arguments))
      case _ where !caller.isTrainer: return Self.wrong("there is no tool of this name")
      case FindClients.name:
        let input = try Self.decode(FindClients.self, call.arguments)
        let people = try await loadedPeople()
        let clients = input.name.map { people.clients(called: $0) } ?? people.clients
        return Self.read(Self.json(AssistantReading.Clients(clients)))
      case GetProfile.name:
        let input = try Self.decode(GetProfile.self, call.arguments)
        let client = try await loadedPeople().client(called: input.client)
        return Self.read(try await reading.profile(of: client))
      case GetCalendar.name:
        let input = try Self.decode(GetCalendar.self, call.arguments)
        return Self.read(try await reading.events(from: input.from))
      case GetReminders.name:
        let input = try Self.decode(GetReminders.self, call.arguments)
        return Self.read(try await reading.reminders(about: input.about))
      default:
        guard let type = AssistantActions.commands.first(where: { $0.name == call.name }) else {
          return Self.wrong("there is no tool of this name")
        }
        return try await perform(type, call.arguments)
      }
    } catch let error as UnresolvedNameError {
      let reason =
        error.candidates.isEmpty
        ? "there is no such client among the caller's contacts"
        : "several clients fit; nothing was done, name one by clientId"
      return Self.read(Self.json(AssistantReading.Clients(error.candidates, error: reason)))
    } catch let refusal as ActionRefusedError {
      return Self.wrong(refusal.reason)
    } catch is DecodingError {
      return Self.wrong("the arguments are not as the tool's parameters say")
    }
  }

  private mutating func perform<Command: AssistantCommand>(
    _ type: Command.Type,
    _ arguments: String
  ) async throws -> Outcome {
    let command = try Command(
      Self.decode(Command.Arguments.self, arguments),
      Command.namesPeople ? try await loadedPeople() : nil
    )
    let recorded = try await recorded(command)
    if recorded.action.status == .done { question.done.insert(Command.name) }
    let reply = ActionReply(
      status: recorded.action.status.rawValue,
      note: recorded.action.status == .proposed
        ? "The trainer has to confirm it. It is not done yet." : nil,
      reason: recorded.action.status == .refused ? recorded.action.result : nil,
      parameters: recorded.isEarlier ? recorded.action.parameters : nil
    )
    return Outcome(result: ToolResult(text: Self.json(reply)), action: recorded)
  }

  /// Performs a command and returns its record; repeating a command adds no action.
  private mutating func recorded<Command: AssistantCommand>(
    _ command: Command
  ) async throws -> AssistantActions.Recorded {
    let key = Made(tool: Command.name, parameters: try AssistantActions.parameters(of: command))
    if let recorded = made[key] { return recorded }
    while true {
      let ordinal = ordinals[Command.name, default: 0]
      ordinals[Command.name] = ordinal + 1
      let recorded = try await actions.perform(
        command,
        ordinal,
        of: turn,
        for: caller,
        question: question
      )
      // A refusal recorded by an earlier attempt applies only to the same command.
      if recorded.isEarlier, recorded.action.status == .refused,
        recorded.action.parameters != key.parameters
      {
        continue
      }
      made[key] = recorded
      return recorded
    }
  }

  private mutating func loadedPeople() async throws -> AssistantPeople {
    if let people { return people }
    let loaded = try await AssistantPeople(of: caller.uid, in: actions.firestore, actions.documents)
    people = loaded
    return loaded
  }

  private var reading: AssistantReading {
    AssistantReading(firestore: actions.firestore, documents: actions.documents, caller: caller)
  }

  private static func read(_ json: String) -> Outcome { Outcome(result: ToolResult(text: json)) }

  private mutating func found(_ input: SearchMessages) async throws -> Outcome {
    let query = input.query.prefix(bytesMax: 1000)
    guard query.contains(where: { !$0.isWhitespace }) else { return Self.wrong("query is blank") }
    let found = try await search.search(query, as: caller.uid, limit: Self.hitsMax)
    hasSearchedByWords = hasSearchedByWords || found.failure != nil
    let messages = sources.add(found.hits).map { AssistantContext.Source($0, caller.zone) }
    return Outcome(result: ToolResult(text: Self.json(SearchReply(messages: messages))))
  }

  private struct ActionReply: Encodable {
    var status: String
    var note: String?
    var reason: String?
    /// The parameters of an earlier attempt's action that was returned instead.
    var parameters: [String: String]?
  }

  private struct SearchReply: Encodable {
    var messages: [AssistantContext.Source]
  }

  private struct Failure: Encodable {
    var error: String
  }

  private static func wrong(_ reason: String) -> Outcome {
    Outcome(result: ToolResult(text: json(Failure(error: reason)), isWrongCall: true))
  }

  private static func decode<Input: Decodable>(
    _ type: Input.Type,
    _ arguments: String
  ) throws -> Input {
    try JSONDecoder().decode(type, from: Data(arguments.utf8))
  }

  private static func json(_ value: some Encodable) -> String {
    AssistantContext.json(value)
  }
}

/// A tool whose arguments are the properties of a type.
protocol AssistantTool: Codable, Sendable {
  /// The arguments as the model gives them.
  associatedtype Arguments: Codable & Sendable = Self

  /// The tool's name, of at most 64 letters.
  static var name: String { get }
  /// The description of the tool for the model, with when to call it.
  static var summary: String { get }
  /// The description of each argument.
  static var descriptions: [String: String] { get }
}

/// The tool that searches the messages of the caller's chats.
struct SearchMessages: AssistantTool {
  var query: String

  static let name = "searchMessages"
  static let summary = "Finds messages of the user's chats by their meaning."
  static let descriptions = ["query": "What to look for, in the language of the chats"]
}
