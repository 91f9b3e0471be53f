import FirestoreClient
import PsstModels

/// The command that adds a call with a client to the trainer's calendar.
struct ScheduleCall: AssistantCommand {
  var clientId: String
  var title: String
  var startTime: String
  var endTime: String

  static let name = "scheduleCall"
  static let summary = """
    Puts a call with one of the trainer's clients into the trainer's calendar. Only when the \
    trainer asks for it.
    """
  static let descriptions = [
    "client": "The client's name as in the question, or an id that findClients returned",
    "title": "A few words",
    "startTime": "In the trainer's time, like 2026-05-01T09:00", "endTime": "Like startTime",
  ]
  static let namesPeople = true

  /// The arguments of the tool.
  struct Arguments: Codable, Sendable {
    var client: String
    var title: String
    var startTime: String
    var endTime: String
  }

  init(_ arguments: Arguments, _ people: AssistantPeople?) throws {
    clientId = try people?.client(called: arguments.client).id ?? ""
    title = arguments.title
    startTime = arguments.startTime
    endTime = arguments.endTime
  }

  private static let longest: Int64 = 24 * 3_600_000_000

  func isAsked(by question: AssistantQuestion, _ reader: ActionReader) async throws -> Bool {
    guard question.allows(Self.name), let client = question.client,
      clientId.utf8.elementsEqual(client.utf8)
    else { return false }
    let name = try await reader.contactName(of: clientId, at: reader.uid) ?? ""
    return question.asks.requests(.call, with: name, share: 1)
  }

  func check(_ caller: AssistantCaller, _ reader: ActionReader) async throws {
    try title.checked("title", charactersMax: 500)
    let (start, end) = try times(caller)
    guard end > start else { throw ActionRefusedError("endTime is not after startTime") }
    guard end.microseconds - start.microseconds <= Self.longest else {
      throw ActionRefusedError("the call would take more than a day")
    }
    guard clientId.isDocumentID, try await reader.role(of: caller.uid) == .trainer,
      try await reader.isContact(clientId, of: caller.uid)
    else { throw ActionRefusedError("there is no such client among the caller's contacts") }
  }

  func targetName(_ reader: ActionReader) async throws -> String? {
    try await reader.name(of: clientId)
  }

  func write(
    _ caller: AssistantCaller,
    actionID: String,
    _ firestore: Firestore,
    _ transaction: Transaction
  ) throws -> DocumentReference {
    let (start, end) = try times(caller)
    let reference = firestore.collection(CalendarEvent.collection).document(caller.uid)
      .collection(CalendarEvent.events).document(actionID)
    let event = CalendarEvent(
      trainerId: caller.uid,
      clientId: clientId,
      title: title,
      startTime: start,
      endTime: end,
      createdBy: .ai
    )
    try transaction.set(reference, event)
    return reference
  }

  private func times(_ caller: AssistantCaller) throws -> (start: Timestamp, end: Timestamp) {
    (
      try caller.zone.time(startTime, named: "startTime", after: caller.now),
      try caller.zone.time(endTime, named: "endTime", after: caller.now)
    )
  }
}
