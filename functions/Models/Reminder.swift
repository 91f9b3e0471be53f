public import FirestoreClient

/// A reminder of a trainer, stored at `reminders/{reminderId}`.
public struct Reminder: Codable, Sendable, Hashable {
  /// The uid of the trainer.
  public var trainerId: String
  /// The text of the reminder.
  public var text: String
  /// The time of the reminder.
  public var dueDate: Timestamp
  /// True if the trainer has completed the reminder.
  public var completed: Bool
  /// The author of the reminder: `ai` or `trainer`.
  public var createdBy: String

  /// Creates a reminder that is not completed by default.
  public init(
    trainerId: String,
    text: String,
    dueDate: Timestamp,
    completed: Bool = false,
    createdBy: String
  ) {
    self.trainerId = trainerId
    self.text = text
    self.dueDate = dueDate
    self.completed = completed
    self.createdBy = createdBy
  }

  /// The name of the collection of reminders.
  public static let collection = "reminders"
}
