import DatabaseModel
import DocumentModel
import Events
import FunctionsRuntime
import HTTPTypes
import Identifiers
import Identity
import Invocation
import JSONText
import Manifests
import TriggerDelivery

/// An event that a test created, which can be converted to a request for a function.
struct HandMadeEvent {
  private typealias Make = (FunctionDefinition, _ project: String, _ now: Timestamp) throws -> Parts

  /// A delivery like one that a real event causes, and the headers that differ from it.
  private struct Parts {
    var content: DeliveryEvent.Content
    var type = DocumentEventType(.written)
    var time: Timestamp
    var attempt: Int
    var headers: [String: String?]
  }

  private let make: Make

  /// Returns the request; throws `FunctionsTestingError` if event and function do not match.
  func request(
    to function: FunctionDefinition,
    project: String,
    now: Timestamp
  ) throws -> InvocationRequest {
    let parts = try make(function, project, now)
    let event = DeliveryEvent(content: parts.content, commitTime: parts.time, auth: .admin)
    var delivery = Delivery(
      id: DeliveryID(sequence: 0, changeIndex: 0, function: function.name),
      event: event,
      type: parts.type
    )
    delivery.attempts = max(0, parts.attempt - 1)
    var request = try DeliveryRequest(
      project: project,
      location: function.options.region ?? FunctionEndpoint.defaultRegion
    ).invocation(for: delivery, bringing: event, id: RandomID.make())
    // The event was not caused by another delivery.
    request.head.headerFields[InvocationRequest.causeHeader] = nil
    for (name, value) in parts.headers {
      guard let field = HTTPField.Name(name) else { continue }
      request.head.headerFields[field] = value.map { HeaderValue.percentEncoded($0) }
    }
    return request
  }

  // MARK: Documents

  static func document<Payload>(_ event: DocumentEvent<Payload>) -> HandMadeEvent {
    HandMadeEvent { function, _, now in
      guard case .document(let type, _) = function.trigger else {
        throw mismatch(function, "follows documents")
      }
      let time = event.time ?? now
      let versions = try versions(of: event.data, type.kind, function.name)
      func document(_ data: Any?) throws -> FirestoreDocument? {
        try data.map {
          FirestoreDocument(
            name: event.documentName,
            fields: try fields(of: $0),
            createTime: time,
            updateTime: time
          )
        }
      }
      let change = DocumentChange(
        name: event.documentName,
        before: try document(versions.before),
        after: try document(versions.after)
      )
      var headers: [String: String?] = ["ce-id": event.id]
      if let auth = event.auth, type.hasAuthContext {
        headers["ce-authtype"] = auth.type.rawValue
        headers["ce-authid"] = .some(auth.id)
      }
      return Parts(
        content: .document(change),
        type: type,
        time: time,
        attempt: event.attempt,
        headers: headers
      )
    }
  }

  private static func versions(
    of data: Any,
    _ kind: ChangeKind,
    _ function: String
  ) throws -> (before: Any?, after: Any?) {
    if let versions = data as? any EventVersions { return versions.both }
    switch kind {
    case .created: return (nil, data)
    case .deleted: return (data, nil)
    case .updated, .written:
      throw FunctionsTestingError(
        .invalidEvent,
        "\(function) is for what is \(kind.rawValue); give its event an update or a write for data, such "
          + "as a DocumentUpdate or a ValueWrite, not \(type(of: data))."
      )
    }
  }

  private static func fields(of data: Any) throws -> MapValue {
    if let document = data as? FirestoreDocument { return document.fields }
    guard let value = data as? any Encodable else {
      throw FunctionsTestingError(
        .invalidEvent,
        "\(type(of: data)) cannot be sent as a document; make it Encodable, or send a FirestoreDocument."
      )
    }
    return try encoding { try ValueEncoder().encodeFields(value) }
  }

  // MARK: Values

  static func value<Payload>(_ event: ValueEvent<Payload>) -> HandMadeEvent {
    HandMadeEvent { function, _, now in
      guard case .value(let kind, _, _) = function.trigger else {
        throw mismatch(function, "follows values of the Realtime Database")
      }
      let versions = try versions(of: event.data, kind, function.name)
      func json(_ data: Any?) throws -> [UInt8] {
        guard let data else { return DatabaseChange.absent }
        guard let value = data as? any Encodable else {
          throw FunctionsTestingError(
            .invalidEvent,
            "\(type(of: data)) cannot be sent as a value; make it Encodable."
          )
        }
        let text = try encoding { try JSONValue(writing: value).bytes }
        return try DatabaseInput(parsing: text).node.json(.objects)
      }
      let change = DatabaseChange(
        instance: event.instance,
        path: event.path.segments,
        before: try json(versions.before),
        after: try json(versions.after)
      )
      return Parts(
        content: .occurrence(.value(change)),
        type: DocumentEventType(kind),
        time: event.time ?? now,
        attempt: event.attempt,
        headers: [
          "ce-id": event.id, "ce-authtype": event.authType.rawValue,
          "ce-authid": event.authID,
        ]
      )
    }
  }

  // MARK: Other events

  static func cloudEvent<Payload>(_ event: CloudEventMessage<Payload>) -> HandMadeEvent {
    HandMadeEvent { function, _, now in
      guard case .cloudEvent = function.trigger else {
        throw mismatch(function, "follows events of other services")
      }
      var contentType = event.dataContentType
      let data: [UInt8]
      if let bytes = event.data as? [UInt8] {
        data = bytes
      } else if let value = event.data as? any Encodable {
        data = try json(value, dates: function.options.dates ?? .rfc3339)
        contentType = contentType ?? "application/json"
      } else {
        throw FunctionsTestingError(
          .invalidEvent,
          "\(Payload.self) cannot be sent as an event's data; make it Encodable, or send bytes."
        )
      }
      let cloudEvent = CloudEvent(
        id: event.id,
        source: event.source,
        type: event.type,
        subject: event.subject,
        time: (event.time ?? now).description,
        dataContentType: contentType,
        dataSchema: event.dataSchema,
        extensions: event.attributes,
        data: data
      )
      return Parts(
        content: .occurrence(.event(cloudEvent)),
        time: event.time ?? now,
        attempt: event.attempt,
        headers: [:]
      )
    }
  }

  static func schedule(_ event: ScheduleEvent) -> HandMadeEvent {
    HandMadeEvent { function, _, now in
      guard case .schedule = function.trigger else {
        throw mismatch(function, "runs by a schedule")
      }
      var headers: [String: String?] = [:]
      if let job = event.jobName { headers["x-cloudscheduler-jobname"] = job }
      return Parts(
        content: .occurrence(.schedule(function: function.name, time: event.scheduleTime)),
        time: now,
        attempt: event.attempt,
        headers: headers
      )
    }
  }

  static func task<Payload: Encodable>(_ task: TaskRequest<Payload>) -> HandMadeEvent {
    HandMadeEvent { function, _, now in
      guard case .taskQueue = function.trigger else {
        throw mismatch(function, "works through tasks")
      }
      let envelope = ["data": task.data]
      let enqueued = EnqueuedTask(
        id: task.taskName,
        queue: function.name,
        body: try json(envelope, dates: function.options.dates ?? .rfc3339),
        scheduleTime: task.scheduledTime ?? now
      )
      return Parts(
        content: .occurrence(.task(enqueued)),
        time: now,
        attempt: task.attempt,
        headers: [
          "x-cloudtasks-taskexecutioncount": String(task.executionCount),
          "x-cloudtasks-taskpreviousresponse": task.previousResponse.map(String.init),
          "x-cloudtasks-taskretryreason": task.retryReason,
        ]
      )
    }
  }

  // MARK: Encoding

  /// Returns a value as JSON, with large integers as plain digits; throws `invalidEvent`.
  static func json(_ value: some Encodable, dates: JSONDates) throws -> [UInt8] {
    try encoding { try CallableClient.json(value, dates: dates) }
  }

  private static func encoding<Result>(_ encode: () throws -> Result) throws -> Result {
    do {
      return try encode()
    } catch let error as ValueCodingError {
      throw FunctionsTestingError(.invalidEvent, "The event's data does not encode: \(error).")
    }
  }

  private static func mismatch(
    _ function: FunctionDefinition,
    _ deed: String
  ) -> FunctionsTestingError {
    FunctionsTestingError(.noSuchFunction, "\(function.name) is not a function that \(deed).")
  }
}

/// A payload that has two versions of a document or of a value.
private protocol EventVersions {
  var both: (before: Any?, after: Any?) { get }
}

extension DocumentUpdate: EventVersions {
  var both: (before: Any?, after: Any?) { (before, after) }
}

extension DocumentWrite: EventVersions {
  var both: (before: Any?, after: Any?) {
    (before.map { $0 as Any }, after.map { $0 as Any })
  }
}

extension ValueUpdate: EventVersions {
  var both: (before: Any?, after: Any?) { (before, after) }
}

extension ValueWrite: EventVersions {
  var both: (before: Any?, after: Any?) {
    (before.map { $0 as Any }, after.map { $0 as Any })
  }
}
