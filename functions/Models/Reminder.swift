public import FirestoreClient

/// A reminder of a trainer, stored at `reminders/{reminderId}`.
public struct Reminder: StoredDocument, Hashable, Identifiable {
  /// The document's id, which is not a field of the document; empty unless a service has set it.
  public var id = ""
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
  /// The fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []

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

  /// Decodes a stored reminder.
  ///
  /// Throws if its text or time is missing or unreadable.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    text = try fields.container.decode(String.self, forKey: .text)
    dueDate = try fields.container.decode(Timestamp.self, forKey: .dueDate)
    trainerId = try fields.optional(.trainerId) ?? ""
    completed = try fields.optional(.completed) ?? false
    createdBy = try fields.optional(.createdBy) ?? ""
    unreadable = fields.unreadable
  }

  /// The name of the collection of reminders.
  public static let collection = "reminders"

  private enum CodingKeys: String, CodingKey {
    case trainerId, text, dueDate, completed, createdBy
  }
}
