import FirestoreClient
import PsstModels

/// The reason that the server wrote a reminder, stored at `reminderCauses/{reminderId}`.
///
/// Only the server reads it. It stays when the trainer completes or deletes the reminder, so that
/// one cause leads to one reminder. It is written and deleted only in transactions that have read
/// it.
struct ReminderCause: Codable, Sendable, Hashable {
  /// The uid of the trainer who gets the reminder.
  var trainerId: String
  /// The text of the reminder as the server wrote it.
  var text: String
  /// The paths of the overlapping calendar events; nil for other causes.
  var events: [String]?

  /// The name of the collection of causes, in which each has its reminder's id.
  static let collection = "reminderCauses"

  /// Returns the reference of a reminder's cause.
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
