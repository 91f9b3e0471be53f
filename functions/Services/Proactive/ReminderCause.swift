import FirestoreClient
import PsstModels

/// Why the server wrote a reminder, `reminderCauses/{reminderId}`, which only the server reads.
///
/// It stays when the trainer completes or deletes the reminder, so that one cause brings one
/// reminder. It is written and deleted only in transactions that have read it.
struct ReminderCause: Codable, Sendable, Hashable {
  /// The trainer whom the reminder is for.
  var trainerId: String
  /// The text of the reminder as the server wrote it.
  var text: String
  /// The places of the calendar events that overlap; nil for other causes.
  var events: [String]?

  /// Where causes are stored, each under its reminder's id.
  static let collection = "reminderCauses"

  /// The cause of a reminder.
  static func reference(_ id: String, in firestore: Firestore) -> DocumentReference {
    firestore.collection(collection).document(id)
  }

  /// Writes the cause and its reminder.
  func write(
    _ id: String,
    dueDate: Timestamp,
    _ firestore: Firestore,
    _ transaction: Transaction
  ) throws {
    try transaction.set(Self.reference(id, in: firestore), self)
    try transaction.set(
      firestore.collection(Reminder.collection).document(id),
      Reminder(trainerId: trainerId, text: text, dueDate: dueDate, createdBy: "ai")
    )
  }
}
