public import FirestoreClient

/// An appointment of a trainer, stored at `calendar/{trainerId}/events/{eventId}`.
public struct CalendarEvent: StoredDocument, Hashable, Identifiable {
  /// The document's id, which is not a field of the document; empty unless a service has set it.
  public var id = ""
  /// The id of the trainer.
  public var trainerId: String
  /// The id of the client; nil if the appointment is not with a user of the app.
  public var clientId: String?
  /// The title of the appointment.
  public var title: String
  /// The start of the appointment.
  public var startTime: Timestamp
  /// The end of the appointment, not before its start.
  public var endTime: Timestamp
  /// The kind of appointment; nil if unknown.
  public var eventType: Kind?
  /// The status of the appointment; nil if unknown.
  public var status: Status?
  /// The author of the appointment; nil if the document does not name one.
  public var createdBy: Author?
  /// The fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []

  /// The kinds of appointment.
  public enum Kind: String, Codable, Sendable, Hashable {
    case training, call, adhoc
  }

  /// The statuses of an appointment.
  public enum Status: String, Codable, Sendable, Hashable {
    case scheduled, completed, cancelled
  }

  /// The possible authors of appointments.
  public enum Author: String, Codable, Sendable, Hashable {
    case ai, trainer
  }

  /// Creates an appointment, by default a scheduled call made by the trainer.
  public init(
    trainerId: String,
    clientId: String?,
    title: String,
    startTime: Timestamp,
    endTime: Timestamp,
    eventType: Kind = .call,
    status: Status = .scheduled,
    createdBy: Author = .trainer
  ) {
    self.trainerId = trainerId
    self.clientId = clientId
    self.title = title
    self.startTime = startTime
    self.endTime = endTime
    self.eventType = eventType
    self.status = status
    self.createdBy = createdBy
  }

  /// Decodes a stored appointment.
  ///
  /// Throws if its start or end is missing or unreadable.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    startTime = try fields.container.decode(Timestamp.self, forKey: .startTime)
    endTime = try fields.container.decode(Timestamp.self, forKey: .endTime)
    trainerId = try fields.optional(.trainerId) ?? ""
    clientId = try fields.optional(.clientId)
    title = try fields.optional(.title) ?? ""
    eventType = try fields.optional(.eventType)
    status = try fields.optional(.status)
    createdBy = try fields.optional(.createdBy)
    unreadable = fields.unreadable
  }

  /// The name of the collection of trainers' calendars.
  ///
  /// A trainer's appointments are below the trainer's id, where no document exists.
  public static let collection = "calendar"
  /// The name of the collection of appointments below a trainer's id.
  public static let events = "events"

  private enum CodingKeys: String, CodingKey {
    case trainerId, clientId, title, startTime, endTime, eventType, status, createdBy
  }
}
