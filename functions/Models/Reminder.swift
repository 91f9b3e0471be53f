public import FirestoreClient

/// What a trainer wants to be reminded of, `reminders/{reminderId}`.
public struct Reminder: Codable, Sendable, Hashable {
  /// The trainer.
  public var trainerId: String
  /// What to think of.
  public var text: String
  /// When to think of it.
  public var dueDate: Timestamp
  /// Whether it is done.
  public var completed: Bool
  /// `ai` or `trainer`.
  public var createdBy: String

  /// A reminder.
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

  /// Where reminders are stored.
  public static let collection = "reminders"
}
