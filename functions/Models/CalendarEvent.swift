public import FirestoreClient

/// An appointment of a trainer, `calendar/{trainerId}/events/{eventId}`.
public struct CalendarEvent: StoredDocument, Hashable {
  /// The trainer.
  public var trainerId: String
  /// The client; nil for an appointment with nobody of the app.
  public var clientId: String?
  /// What it is about.
  public var title: String
  /// When it begins.
  public var startTime: Timestamp
  /// When it ends; not before it begins.
  public var endTime: Timestamp
  /// What kind of appointment it is; nil for a kind that is not known.
  public var eventType: Kind?
  /// Whether it still takes place; nil for a status that is not known.
  public var status: Status?
  /// Who made it; nil when the document does not say.
  public var createdBy: Author?
  /// The fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []

  /// The kinds of appointment.
  public enum Kind: String, Codable, Sendable, Hashable {
    case training, call, adhoc
  }

  /// What can become of an appointment.
  public enum Status: String, Codable, Sendable, Hashable {
    case scheduled, completed, cancelled
  }

  /// Who makes appointments.
  public enum Author: String, Codable, Sendable, Hashable {
    case ai, trainer
  }

  /// An appointment.
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

  /// Reads a stored appointment; throws when it has no times.
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

  /// The collection of trainers' calendars; each trainer has a place there, but no document.
  public static let collection = "calendar"
  /// Where a trainer's appointments are stored, below the trainer's place.
  public static let events = "events"

  private enum CodingKeys: String, CodingKey {
    case trainerId, clientId, title, startTime, endTime, eventType, status, createdBy
  }
}
