import FirestoreClient
import PsstModels
import PsstServices

/// The tool that finds clients by their names.
struct FindClients: AssistantTool {
  var name: String?

  static let name = "findClients"
  static let summary = """
    Finds the trainer's clients, with the ids that other tools take. Several can have one name.
    """
  static let descriptions = ["name": "A name or a part of it; null for all clients"]
}

/// The tool that reads what is known of a client.
struct GetProfile: AssistantTool {
  var client: String

  static let name = "getProfile"
  static let summary = "Reads what the trainer has learnt of a client: injuries, goals and so on."
  static let descriptions = ["client": "The client's name, or an id that findClients returned"]
}

/// The tool that reads the trainer's calendar.
struct GetCalendar: AssistantTool {
  var from: String?

  static let name = "getCalendar"
  static let summary = "Reads the next events of the trainer's calendar."
  static let descriptions = ["from": "The earliest start, like 2026-05-01T09:00; null for now"]
}

/// The tool that reads the trainer's open reminders.
struct GetReminders: AssistantTool {
  var about: String?

  static let name = "getReminders"
  static let summary = "Reads the trainer's open reminders, the next one first."
  static let descriptions = ["about": "A word of the reminders; null for all"]
}

/// The documents that the reading tools read, in the form that the model gets.
///
/// Results are short, because every one stays in the conversation with the model.
struct AssistantReading: Sendable {
  let firestore: Firestore
  let documents: DocumentReader
  let caller: AssistantCaller

  /// The maximum number of entries in a result.
  static let entriesMax = 20
  /// The maximum number of reminders that are read to find the next ones.
  private static let documentsMax = 200
  /// The most bytes of one text in a result, as JSON.
  private static let textBytesMax = 300

  /// A client as the model knows one.
  struct FoundClient: Encodable {
    var clientId: String
    var name: String
    var chatId: String?

    init(_ person: AssistantPeople.Person) {
      clientId = person.id
      name = person.name.asName
      chatId = person.chats.first?.id
    }
  }

  /// The clients of a result, and whether there are more.
  struct Clients: Encodable {
    var error: String?
    var clients: [FoundClient]
    var more: Bool?

    init(_ people: [AssistantPeople.Person], error: String? = nil) {
      self.error = error
      clients = people.prefix(entriesMax).map(FoundClient.init)
      more = people.count > entriesMax ? true : nil
    }
  }

  private struct Profile: Encodable {
    var client: String
    var facts: [String: [String]]
  }

  private struct Event: Encodable {
    var title: String
    var startTime: String
    var endTime: String
    var clientId: String?
  }

  private struct Due: Encodable {
    var text: String
    var dueDate: String
  }

  /// Returns the facts about a client, the latest of each category.
  func profile(of person: AssistantPeople.Person) async throws -> String {
    let stored = try await firestore.collection(ClientProfile.collection).document(caller.uid)
      .collection(ClientProfile.clients).document(person.id).get()
    let profile = documents.read(stored, as: ClientProfile.self)?.value
    let perCategory = Self.entriesMax / ProfileCategory.allCases.count
    var facts: [String: [String]] = [:]
    for category in ProfileCategory.allCases {
      let items = (profile?[category] ?? []).sorted { $1.timestamp < $0.timestamp }
      guard !items.isEmpty else { continue }
      facts[category.rawValue] = items.prefix(perCategory).map { Self.short($0.text) }
    }
    return AssistantContext.json(Profile(client: person.name.asName, facts: facts))
  }

  /// Returns the events from a time on that are not cancelled, or those that end after now.
  ///
  /// Throws `ActionRefusedError` for a text that is no time, or a time of more than a year ago.
  func events(from text: String?) async throws -> String {
    let year: Int64 = 366 * 86_400_000_000
    let longAgo = Timestamp(microseconds: caller.now.microseconds - year)
    let start = try text.map { try caller.zone.time($0, named: "from", after: longAgo) }
    // An event that has begun may go on.
    let dayAgo = Timestamp(microseconds: caller.now.microseconds - 86_400_000_000)
    let events = try await firestore.collection(CalendarEvent.collection).document(caller.uid)
      .collection(CalendarEvent.events)
      .where("startTime", .greaterThanOrEqual, start ?? dayAgo)
      .order(by: "startTime").limit(Self.documentsMax).get()
    return AssistantContext.json([
      "events": events.compactMap { snapshot -> Event? in
        guard let event = documents.read(snapshot, as: CalendarEvent.self)?.value,
          event.status != .cancelled, start != nil || event.endTime > caller.now
        else { return nil }
        return Event(
          title: Self.short(event.title),
          startTime: caller.zone.text(event.startTime),
          endTime: caller.zone.text(event.endTime),
          clientId: event.clientId
        )
      }.prefix(Self.entriesMax).map { $0 }
    ])
  }

  /// Returns the open reminders with a word, or all, the next one first.
  func reminders(about text: String?) async throws -> String {
    let words = Set(NameWords.of(text ?? ""))
    let stored = try await firestore.collection(Reminder.collection)
      .where("trainerId", .equal, caller.uid).where("completed", .equal, false)
      .order(by: "dueDate").limit(Self.documentsMax).get()
    let open = try stored.compactMap { try $0.data(as: Lenient<Reminder>.self).value }
      .filter { words.isSubset(of: NameWords.of($0.text)) }
    return AssistantContext.json([
      "reminders": open.prefix(Self.entriesMax).map { reminder in
        Due(text: Self.short(reminder.text), dueDate: caller.zone.text(reminder.dueDate))
      }
    ])
  }

  private static func short(_ text: String) -> String { text.prefix(jsonBytesMax: textBytesMax) }
}
