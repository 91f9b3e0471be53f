/// One event about a document, as a trigger's handler gets it.
///
/// Events come at least once and can come out of order: act on the document as it is now, and give
/// the same result when the same event, recognisable by its `id`, comes twice.
public struct DocumentEvent<Payload: Sendable>: Sendable {
  /// The event's id; the same on each delivery.
  public var id: String
  /// When the document changed; nil in an event made by hand.
  public var time: Timestamp?
  /// The document's path below the database, such as `chats/c1/messages/m1`.
  public var path: ResourcePath
  /// The database that holds the document.
  public var database: DatabaseName
  /// The captures of the trigger's pattern.
  public var params: EventParams
  /// The document, the update or the change, decoded.
  public var data: Payload
  /// Who caused the change; nil unless the function was declared `withAuthContext`.
  public var auth: EventAuth?
  /// The number of this event's delivery to this function, from 1.
  public var attempt: Int
  /// The id that follows this invocation through the logs of server and worker.
  public var invocationID: String
  /// A logger whose lines carry the invocation's id.
  public var logger: Logger

  /// An event as a test makes one.
  ///
  /// `params` may be left out: a function that is called directly reads them from the path.
  public init(
    path: String,
    data: Payload,
    id: String = "test",
    time: Timestamp? = nil,
    database: DatabaseName = DatabaseName(project: "demo-test"),
    params: [String: String] = [:],
    auth: EventAuth? = nil,
    attempt: Int = 1,
    invocationID: String = "test",
    logger: Logger = Logger(label: "event")
  ) {
    self.path = ResourcePath(slashSeparated: path)
    self.data = data
    self.id = id
    self.time = time
    self.database = database
    self.params = EventParams(params)
    self.auth = auth
    self.attempt = attempt
    self.invocationID = invocationID
    self.logger = logger
  }

  /// The document's full resource name.
  public var documentName: DocumentName { DocumentName(database: database, path: path) }
}

/// The captures of a pattern such as `chats/{chatId}`: `try event.params.chatId`.
@dynamicMemberLookup
public struct EventParams: Sendable, Hashable {
  /// The captured segments by name.
  public var values: [String: String]

  /// Captures by name.
  public init(_ values: [String: String]) {
    self.values = values
  }

  /// The captured segment; throws a permanent `EventError` when the pattern has no such name.
  public subscript(dynamicMember name: String) -> String {
    get throws { try self[name] }
  }

  /// The captured segment, for computed names; throws like the other subscript.
  public subscript(name: String) -> String {
    get throws {
      guard let value = values[name] else {
        let known = values.keys.sorted().joined(separator: ", ")
        throw EventError.permanent(
          "The trigger's pattern captures no '\(name)'; it captures: \(known)."
        )
      }
      return value
    }
  }
}

/// A document before and after an update.
public struct DocumentUpdate<Payload: Sendable>: Sendable {
  /// The document before the update.
  public var before: Payload
  /// The document after the update.
  public var after: Payload
  /// The paths of the fields that differ, as deep as maps go.
  public var changedFields: [FieldPath]

  /// An update, as a test makes one.
  public init(before: Payload, after: Payload, changedFields: [FieldPath] = []) {
    self.before = before
    self.after = after
    self.changedFields = changedFields
  }
}

/// The change of a document.
public enum DocumentWrite<Payload: Sendable>: Sendable {
  /// The document is new.
  case created(Payload)
  /// The document existed and now differs in these fields.
  case updated(before: Payload, after: Payload, fields: [FieldPath])
  /// The document is gone.
  case deleted(Payload)

  /// The document after the change; nil when it is gone.
  public var after: Payload? {
    switch self {
    case .created(let after), .updated(_, let after, _): after
    case .deleted: nil
    }
  }

  /// The document before the change; nil when it is new.
  public var before: Payload? {
    switch self {
    case .updated(let before, _, _), .deleted(let before): before
    case .created: nil
    }
  }
}

extension DocumentUpdate: Equatable where Payload: Equatable {}
extension DocumentWrite: Equatable where Payload: Equatable {}
