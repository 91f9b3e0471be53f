import DocumentModel
import Events
import FirestoreWire
import HTTPMessages
import HTTPTypes
import Identifiers
import Identity
package import Invocation
import NIOCore
import StatusCodes
import SwiftProtobuf

/// The builder of the requests that carry deliveries to their functions.
///
/// Events are CloudEvents in binary mode, as Eventarc sends them, with protobuf data for documents.
/// Schedules and tasks are the plain requests of Cloud Scheduler and Cloud Tasks.
package struct DeliveryRequest: Sendable {
  private let project: String
  private let location: String

  /// Creates requests for a project whose functions are in `location`.
  package init(project: String, location: String) {
    self.project = project
    self.location = location
  }

  /// Returns the invocation for a delivery's next attempt, which carries its event.
  package func invocation(
    for delivery: Delivery,
    bringing event: DeliveryEvent,
    id: String
  ) throws -> InvocationRequest {
    var fields = HTTPFields()
    var body: [UInt8] = []
    var timeout: Duration?
    var (function, method, path) = (delivery.id.function, HTTPRequest.Method.post, "/")
    switch event.content {
    case .document(let change):
      let event = try self.event(of: change, event.auth, for: delivery)
      set(event, in: &fields)
      body = event.data
    case .occurrence(.event(let event)):
      set(event, in: &fields)
      body = event.data
    case .occurrence(.value(let change)):
      let event = try self.event(of: change, event.auth, for: delivery)
      set(event, in: &fields)
      body = event.data
    case .occurrence(.schedule(let function, let time)):
      set("x-cloudscheduler", "true", in: &fields)
      set("x-cloudscheduler-jobname", jobName(function), in: &fields)
      set("x-cloudscheduler-scheduletime", time.description, in: &fields)
      fields[.contentType] = "application/octet-stream"
    case .occurrence(.task(let task)):
      set(task, delivery, in: &fields)
      body = task.body
      timeout = .seconds(task.dispatchDeadline)
      if let target = task.target { method = HTTPRequest.Method(target.method) ?? method }
      if case .function(let name, let rest) = task.target?.place { (function, path) = (name, rest) }
    }
    fields[InvocationRequest.attemptHeader] = String(delivery.attempts + 1)
    fields[InvocationRequest.causeHeader] = CauseSignature.signed(
      DeliveryCause(id: delivery.id, depth: delivery.depth).description
    )
    fields[.traceParent] = traceParent(of: delivery, event)
    let head = HTTPRequest(
      method: method,
      scheme: "http",
      authority: "localhost",
      path: path,
      headerFields: fields
    )
    return InvocationRequest(
      id: id,
      function: function,
      head: head,
      body: ByteBuffer(bytes: body),
      timeout: timeout
    )
  }

  /// Returns the `traceparent` of an attempt; an event without a trace begins a new one.
  ///
  /// The ids are hashes, so all functions and attempts of an event share its trace.
  private func traceParent(of delivery: Delivery, _ event: DeliveryEvent) -> String {
    let span = DeliveryLane("span", delivery.id.description, "\(delivery.attempts)").hash.hexDigits
    let flags = Self.parent(of: event)?.flags ?? "01"
    return "00-\(Self.traceID(of: delivery.id, event))-\(span)-\(flags)"
  }

  /// Returns the ID of the trace to which all attempts of a delivery belong.
  static func traceID(of id: DeliveryID, _ event: DeliveryEvent) -> String {
    if let parent = parent(of: event) { return String(parent.traceID) }
    return ["trace", "trace's end"].map { DeliveryLane($0, id.eventID).hash.hexDigits }.joined()
  }

  /// Returns the parts of the `traceparent` that an event brought; nil if it has none.
  private static func parent(
    of event: DeliveryEvent
  ) -> (traceID: Substring, flags: Substring)? {
    guard let parts = event.traceParent?.split(separator: "-"), parts.count == 4 else { return nil }
    return (parts[1], parts[3])
  }

  /// Returns the CloudEvent of a document change.
  func event(
    of change: DocumentChange,
    _ auth: AuthContext,
    for delivery: Delivery
  ) throws -> CloudEvent {
    guard case .document(let type, _) = delivery.source else {
      throw StatusError(.internal, "\(delivery.id) is not the delivery of a document's event.")
    }
    let name = change.name
    let data: [UInt8] = try WireFormat.eventData(for: change).serializedBytes()
    var extensions = [
      "project": name.database.project, "location": location,
      "database": name.database.database, "namespace": "(default)",
      "document": name.path.description,
    ]
    if type.hasAuthContext {
      let (type, id) = authContext(of: auth)
      extensions["authtype"] = type
      extensions["authid"] = id
    }
    return CloudEvent(
      id: delivery.id.eventID,
      source: "//firestore.googleapis.com/\(name.database)",
      type: type.name,
      subject: "documents/\(name.path)",
      time: delivery.commitTime.description,
      dataContentType: "application/protobuf",
      dataSchema: Self.dataSchema,
      extensions: extensions,
      data: data
    )
  }

  /// Returns the CloudEvent of a change of a node of the Realtime Database.
  func event(
    of change: DatabaseChange,
    _ auth: AuthContext,
    for delivery: Delivery
  ) throws -> CloudEvent {
    guard case .value(let kind, _) = delivery.source else {
      throw StatusError(.internal, "\(delivery.id) is not the delivery of a value's event.")
    }
    let ref = delivery.subject
    let (authType, authID) =
      switch auth {
      case .admin: ("admin", String?.none)
      case .unauthenticated: ("unauthenticated", nil)
      case .user(let user): ("app_user", user.uid)
      }
    var extensions = [
      "instance": change.instance, "ref": ref, "firebasedatabasehost": "firebaseio.com",
      "location": Self.databaseLocation, "authtype": authType,
    ]
    extensions["authid"] = authID
    return CloudEvent(
      id: delivery.id.eventID,
      source: "//firebasedatabase.googleapis.com/projects/_/locations/\(Self.databaseLocation)"
        + "/instances/\(change.instance)",
      type: DatabaseEventType(kind).name,
      subject: "refs/\(ref)",
      time: delivery.commitTime.description,
      dataContentType: "application/json",
      extensions: extensions,
      data: try change.narrowed(to: ref.split(separator: "/").map { String($0) }).eventData()
    )
  }

  /// The location of all instances of the Realtime Database, as of those at `firebaseio.com`.
  private static let databaseLocation = "us-central1"

  /// Returns the writer in production's terms; end users have their id and the type `unknown`.
  private func authContext(of auth: AuthContext) -> (type: String, id: String?) {
    switch auth {
    case .admin: ("service_account", "firebase-adminsdk@\(project).iam.gserviceaccount.com")
    case .unauthenticated: ("unauthenticated", nil)
    case .user(let user): ("unknown", user.uid)
    }
  }

  private func set(_ event: CloudEvent, in fields: inout HTTPFields) {
    let attributes = [
      ("specversion", "1.0"), ("id", event.id), ("source", event.source), ("type", event.type),
      ("subject", event.subject), ("time", event.time), ("dataschema", event.dataSchema),
    ]
    for case (let name, let value?) in attributes { set(attribute: name, value, in: &fields) }
    for (name, value) in event.extensions { set(attribute: name, value, in: &fields) }
    fields[.contentType] = event.dataContentType
  }

  private func set(attribute name: String, _ value: String, in fields: inout HTTPFields) {
    guard let field = Self.attributeFields[name] ?? HTTPField.Name("ce-\(name)") else { return }
    fields.append(HTTPField(name: field, value: HeaderValue.percentEncoded(value)))
  }

  /// The headers of the attributes that documents and values have in their events, created once.
  private static let attributeFields = Dictionary(
    uniqueKeysWithValues: [
      "specversion", "id", "source", "type", "subject", "time", "dataschema", "project", "location",
      "database", "namespace", "document", "authtype", "authid", "instance", "ref",
      "firebasedatabasehost",
    ].compactMap { name in HTTPField.Name("ce-\(name)").map { (name, $0) } }
  )

  private func set(_ task: EnqueuedTask, _ delivery: Delivery, in fields: inout HTTPFields) {
    fields[.contentType] = "application/json"
    for (name, value) in task.headers {
      if let field = HTTPField.Name(name) { fields[field] = value }
    }
    set("x-cloudtasks-queuename", task.queue, in: &fields)
    set("x-cloudtasks-taskname", task.id, in: &fields)
    set("x-cloudtasks-taskretrycount", String(delivery.attempts), in: &fields)
    set("x-cloudtasks-taskexecutioncount", String(delivery.executions), in: &fields)
    let seconds = Double(task.scheduleTime.microseconds) / 1_000_000
    set("x-cloudtasks-tasketa", String(seconds), in: &fields)
    if delivery.attempts > 0 {
      set("x-cloudtasks-taskpreviousresponse", delivery.lastStatus.map(String.init), in: &fields)
      let reason = delivery.lastError.map { String($0.prefix(Self.reasonCharactersMax)) }
      set("x-cloudtasks-taskretryreason", reason, in: &fields)
    }
  }

  private func set(_ name: String, _ value: String?, in fields: inout HTTPFields) {
    guard let value, let field = HTTPField.Name(name) else { return }
    fields[field] = HeaderValue.percentEncoded(value)
  }

  /// Returns the name of the job that Firebase creates for a scheduled function.
  private func jobName(_ function: String) -> String { "firebase-schedule-\(function)-\(location)" }

  /// The maximum number of characters of the last error that a task receives.
  private static let reasonCharactersMax = 300

  private static let dataSchema =
    "https://github.com/googleapis/google-cloudevents/blob/main/proto/google/events/cloud/firestore/v1/data.proto"
}

/// CloudEvents' encoding of header values (HTTP protocol binding 1.0, section 3.1.3.2).
///
/// Everything except printable ASCII, and also `"`, `%` and the space, is percent-encoded as UTF-8.
package enum HeaderValue {
  /// Returns a value encoded for a header.
  package static func percentEncoded(_ text: String) -> String {
    guard !text.utf8.allSatisfy(isPlain) else { return text }
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      if isPlain(byte) {
        bytes.append(byte)
      } else {
        bytes += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    (0x21...0x7E).contains(byte) && byte != 0x22 && byte != 0x25
  }

  private static let digits = Array("0123456789ABCDEF".utf8)
}
