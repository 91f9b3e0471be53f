public import FirestoreClient
public import PsstModels

/// The calendar of the signed-in trainer.
public struct CalendarService: Sendable {
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

  // MARK: Reading

  /// Returns the events that start in a range of time, in the order of their start.
  ///
  /// Throws `CalendarError`.
  public func getEvents<Time: PointInTime>(in range: Range<Time>) async throws -> [CalendarEvent] {
    try await CalendarError.mapping { events(in: try await query(range).get()) }
  }

  /// The events that start in a range of time, now and after every change.
  ///
  /// They are in the order of their start.
  public func observeEvents<Time: PointInTime>(in range: Range<Time>) -> Updates<[CalendarEvent]> {
    Updates(query(range).snapshots(), errors: CalendarError.self) { events(in: $0) }
  }

  // MARK: Writing

  /// Adds an event and returns it with its id; throws `CalendarError`.
  @discardableResult
  public func addEvent(
    title: String,
    from start: some PointInTime,
    to end: some PointInTime,
    with clientID: String? = nil,
    type: CalendarEvent.Kind = .training
  ) async throws -> CalendarEvent {
    try Self.check(title, start.timestamp, end.timestamp)
    let reference = collection.document()
    var event = CalendarEvent(
      trainerId: trainerID,
      clientId: clientID,
      title: title,
      startTime: start.timestamp,
      endTime: end.timestamp,
      eventType: type
    )
    event.id = reference.id
    return try await CalendarError.mapping {
      try await reference.create(event)
      return event
    }
  }

  /// Changes the title and the times of an event; throws `CalendarError`.
  public func updateEvent(
    _ eventID: String,
    title: String,
    from start: some PointInTime,
    to end: some PointInTime
  ) async throws {
    try Self.check(title, start.timestamp, end.timestamp)
    try await update(
      eventID,
      [
        "title": .value(title), "startTime": .value(start.timestamp),
        "endTime": .value(end.timestamp),
      ]
    )
  }

  /// Marks an event as completed or cancelled, or as scheduled again; throws `CalendarError`.
  public func setStatus(_ status: CalendarEvent.Status, of eventID: String) async throws {
    try await update(eventID, ["status": .value(status)])
  }

  /// Deletes an event; throws `CalendarError`, for example `eventNotFound`.
  public func deleteEvent(_ eventID: String) async throws {
    try await CalendarError.mapping { try await reference(eventID).delete(.exists) }
  }

  // MARK: Helpers

  private static func check(_ title: String, _ start: Timestamp, _ end: Timestamp) throws {
    guard DisplayName.isVisible(title), title.utf16.count <= titleLengthMax else {
      throw CalendarError.invalidTitle
    }
    guard start < end else { throw CalendarError.invalidTimes }
  }

  private func update(_ eventID: String, _ fields: [String: FieldValue]) async throws {
    try await CalendarError.mapping { try await reference(eventID).update(fields) }
  }

  private var collection: CollectionReference {
    firestore.collection(CalendarEvent.collection).document(trainerID)
      .collection(CalendarEvent.events)
  }

  private func reference(_ eventID: String) throws -> DocumentReference {
    guard eventID.isDocumentID else { throw CalendarError.eventNotFound }
    return collection.document(eventID)
  }

  private func query<Time: PointInTime>(_ range: Range<Time>) -> DocumentQuery {
    collection.where("startTime", .greaterThanOrEqual, range.lowerBound.timestamp)
      .where("startTime", .lessThan, range.upperBound.timestamp)
      .order(by: "startTime").limit(Self.eventsMax)
  }

  private func events(in snapshot: QuerySnapshot) -> [CalendarEvent] {
    snapshot.compactMap { snapshot in
      var event = documents.read(snapshot, as: CalendarEvent.self)?.value
      event?.id = snapshot.id
      return event
    }
  }

  /// The maximum number of events in a list.
  private static let eventsMax = 2000
  private static let titleLengthMax = 500
}
