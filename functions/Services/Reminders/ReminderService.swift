public import FirestoreClient
public import PsstModels

/// The reminders of the signed-in trainer: their own, the assistant's and the server's.
public struct ReminderService: Sendable {
  private let firestore: Firestore
  private let trainerID: String
  private let documents: DocumentReader

  /// Creates a service for the trainer with the given uid, as whom `firestore` acts.
  public init(
    firestore: Firestore,
    uid: String,
    documents: DocumentReader = DocumentReader()
  ) {
    self.firestore = firestore
    trainerID = uid
    self.documents = documents
  }

  /// Returns the reminders that are not completed, in the order of their due dates.
  ///
  /// Throws `ReminderError`.
  public func getReminders() async throws -> [Reminder] {
    try await ReminderError.mapping { reminders(in: try await openReminders.get()) }
  }

  /// The reminders that are not completed, now and after every change.
  ///
  /// They are in the order of their due dates.
  public func observeReminders() -> Updates<[Reminder]> {
    Updates(openReminders.snapshots(), errors: ReminderError.self) { reminders(in: $0) }
  }

  /// Adds a reminder and returns it with its id; throws `ReminderError`.
  @discardableResult
  public func addReminder(text: String, dueDate: some PointInTime) async throws -> Reminder {
    guard DisplayName.isVisible(text), text.utf16.count <= Self.textLengthMax else {
      throw ReminderError.invalidText
    }
    let reference = firestore.collection(Reminder.collection).document()
    var reminder = Reminder(
      trainerId: trainerID,
      text: text,
      dueDate: dueDate.timestamp,
      createdBy: "trainer"
    )
    reminder.id = reference.id
    return try await ReminderError.mapping { [reminder] in
      try await reference.create(reminder)
      return reminder
    }
  }

  /// Marks a reminder as completed; throws `ReminderError`, for example `reminderNotFound`.
  public func completeReminder(reminderId: String) async throws {
    try await change(reminderId) { try await $0.update(["completed": true]) }
  }

  /// Deletes a reminder; throws `ReminderError`, for example `reminderNotFound`.
  public func deleteReminder(reminderId: String) async throws {
    try await change(reminderId) { try await $0.delete(.exists) }
  }

  private func change(
    _ reminderID: String,
    _ write: (DocumentReference) async throws -> WriteResult
  ) async throws {
    try await ReminderError.mapping {
      guard reminderID.isDocumentID else { throw ReminderError.reminderNotFound }
      do {
        _ = try await write(firestore.collection(Reminder.collection).document(reminderID))
      } catch let error as FirestoreError where error.code == .permissionDenied {
        // The access rules refuse a missing document as they refuse another trainer's.
        throw ReminderError.reminderNotFound
      }
    }
  }

  private var openReminders: DocumentQuery {
    firestore.collection(Reminder.collection).where("trainerId", .equal, trainerID)
      .where("completed", .equal, false).order(by: "dueDate").limit(Self.remindersMax)
  }

  private func reminders(in snapshot: QuerySnapshot) -> [Reminder] {
    snapshot.compactMap { snapshot in
      var reminder = documents.read(snapshot, as: Reminder.self)?.value
      reminder?.id = snapshot.id
      return reminder
    }
  }

  /// The maximum number of reminders in a list, more than anybody works through.
  private static let remindersMax = 500
  /// The access rules enforce the same limit.
  private static let textLengthMax = 5000
}
