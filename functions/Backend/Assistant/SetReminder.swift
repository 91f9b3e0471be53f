import FirestoreClient
import PsstModels

/// The command that creates a reminder for the trainer.
struct SetReminder: AssistantCommand {
  var text: String
  var dueDate: String

  static let name = "setReminder"
  static let summary = "Reminds the trainer of something. Only when the trainer asks for it."
  static let descriptions = [
    "text": "What to think of", "dueDate": "In the trainer's time, like 2026-05-01T09:00",
  ]
  static let namesPeople = false

  init(text: String, dueDate: String) {
    self.text = text
    self.dueDate = dueDate
  }

  init(_ arguments: SetReminder, _ people: AssistantPeople?) {
    self = arguments
  }

  func isAsked(by question: AssistantQuestion, _ reader: ActionReader) async throws -> Bool {
    question.allows(Self.name) && question.asks.requests(.reminder, with: text, share: 0.5)
  }

  func check(_ caller: AssistantCaller, _ reader: ActionReader) async throws {
    try text.checked("text", charactersMax: 5000)
    _ = try caller.zone.time(dueDate, named: "dueDate", after: caller.now)
    guard try await reader.role(of: caller.uid) == .trainer else {
      throw ActionRefusedError("only trainers have reminders")
    }
  }

  func targetName(_ reader: ActionReader) -> String? { nil }

  func write(
    _ caller: AssistantCaller,
    actionID: String,
    _ firestore: Firestore,
    _ transaction: Transaction
  ) throws -> DocumentReference {
    let reference = firestore.collection(Reminder.collection).document(actionID)
    let due = try caller.zone.time(dueDate, named: "dueDate", after: caller.now)
    try transaction.set(
      reference,
      Reminder(trainerId: caller.uid, text: text, dueDate: due, createdBy: "ai")
    )
    return reference
  }
}
