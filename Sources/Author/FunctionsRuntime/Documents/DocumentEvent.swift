/// One event about a document, as passed to the handler of a trigger.
///
/// Events are delivered at least once and can arrive out of order. Handlers should therefore read
/// the current state of the document, and should produce the same result if an event with the same
/// `id` arrives twice.
public struct DocumentEvent<Payload: Sendable>: Sendable {
  /// The event's id, which is the same in each delivery of the event.
  public var id: String
  /// The time at which the document changed; nil in an event made by hand.
  public var time: Timestamp?
  /// The document's path below the database, such as `chats/c1/messages/m1`.
  public var path: ResourcePath
  /// The database that holds the document.
  public var database: DatabaseName
  /// The values that the wildcards of the trigger's pattern captured.
  public var params: EventParams
  /// The decoded document, update or change, depending on the trigger.
  public var data: Payload
  /// The caller that caused the change; nil unless the function was declared `withAuthContext`.
  public var auth: EventAuth?
  /// The number of this delivery of the event to the function, starting at 1.
  public var attempt: Int
  /// The id that identifies this invocation in the logs of the server and the worker.
  public var invocationID: String
  /// A logger that adds the id of the invocation to each line.
  public var logger: Logger

  /// Creates an event for a test.
  ///
  /// You can omit `params`: a function that is called directly captures them from the path.
  public init(
    path: String,
    data: Payload,
    id: String = "test",
    time: (any PointInTime)? = nil,
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
    self.time = time?.timestamp
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

/// The captures of a pattern such as `chats/{chatId}`, read as `try event.params.chatId`.
@dynamicMemberLookup
public struct EventParams: Sendable, Hashable {
  /// The captured path segments by wildcard name.
  public var values: [String: String]

  /// Creates params from captured path segments by wildcard name.
  public init(_ values: [String: String]) {
    self.values = values
  }

  /// The captured segment; throws a permanent `EventError` if the pattern has no such wildcard.
  public subscript(dynamicMember name: String) -> String {
    get throws { try self[name] }
  }

  /// The captured segment for a name that is computed at run time.
  ///
  /// Throws a permanent `EventError` if the pattern has no such wildcard.
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
  /// The paths of the fields that differ, down to the fields of nested maps.
  public var changedFields: [FieldPath]

  /// Creates an update for a test.
  public init(before: Payload, after: Payload, changedFields: [FieldPath] = []) {
    self.before = before
    self.after = after
    self.changedFields = changedFields
  }

  /// Returns true if a property differs between both versions, as in `changed(\.name)`.
  public func changed<Value: Equatable>(_ property: KeyPath<Payload, Value>) -> Bool {
    before[keyPath: property] != after[keyPath: property]
  }

  /// Returns true if a field differs, or a field of its map, as in
  /// `changedField("address.city")`.
  ///
  /// It asks `changedFields`, so it also knows fields that `Payload` leaves out.
  public func changedField(_ field: FieldPath) -> Bool { changedFields.changed(field) }
}

/// A change of a document of any kind: creation, update or deletion.
public enum DocumentWrite<Payload: Sendable>: Sendable {
  /// The document was created.
  case created(Payload)
  /// The document existed before, and the given fields now differ.
  case updated(before: Payload, after: Payload, fields: [FieldPath])
  /// The document was deleted; the value is its last state.
  case deleted(Payload)

  /// The document after the change; nil if it was deleted.
  public var after: Payload? {
    switch self {
    case .created(let after), .updated(_, let after, _): after
    case .deleted: nil
    }
  }

  /// The document before the change; nil if it was created.
  public var before: Payload? {
    switch self {
    case .updated(let before, _, _), .deleted(let before): before
    case .created: nil
    }
  }
}

extension DocumentWrite {
  /// Returns true if a property differs between both versions, as in `changed(\.name)`.
  ///
  /// Every property of a document that was created or deleted has changed, except an optional one
  /// that is nil, because a document that does not exist has no value either.
  public func changed<Value: Equatable>(_ property: KeyPath<Payload, Value>) -> Bool {
    // With an overload for optional properties, the compiler could not name a misspelled one.
    func value(in document: Payload?) -> Value? {
      guard let value = document?[keyPath: property] else { return nil }
      return (value as? any OptionalValue)?.isNil == true ? nil : value
    }
    return value(in: before) != value(in: after)
  }
}

/// An optional of any type.
private protocol OptionalValue {
  var isNil: Bool { get }
}

extension Optional: OptionalValue {
  fileprivate var isNil: Bool { self == nil }
}

extension DocumentWrite where Payload == FirestoreDocument {
  /// Returns true if a field differs, or a field of its map, as in
  /// `changedField("address.city")`.
  ///
  /// A field of a document that was created or deleted has changed if the document has it.
  public func changedField(_ field: FieldPath) -> Bool {
    switch self {
    case .created(let document), .deleted(let document): document.fields[field] != nil
    case .updated(_, _, let fields): fields.changed(field)
    }
  }
}

extension [FieldPath] {
  /// Returns true if the list has a field, a map that holds it, or a field that it holds.
  fileprivate func changed(_ field: FieldPath) -> Bool {
    contains { $0.isBelowOrEqual(to: field) || field.isBelowOrEqual(to: $0) }
  }
}

extension DocumentUpdate: Equatable where Payload: Equatable {}
extension DocumentWrite: Equatable where Payload: Equatable {}
