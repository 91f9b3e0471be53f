import DocumentModel
import Events

/// A converter of first-generation events and Pub/Sub push messages to CloudEvents.
///
/// The Functions Frameworks share this conversion, and their conformance tests check it.
enum LegacyEvent {
  /// Returns the event in a body that is not marked as a CloudEvent.
  ///
  /// `path` is the path of the request, which may name the topic of a push message.
  static func event(_ body: [UInt8], path: String) throws -> CloudEvent {
    let members = try EventJSON.members(of: body)
    if members["message"] != nil, members["subscription"] != nil {
      return try pushed(members, path: path)
    }
    // The context is either an object of its own, or its members are next to the data.
    let context = try members["context"].map(EventJSON.members(of:)) ?? members
    func text(_ name: String) throws -> String? {
      if case .string(let text)? = try context[name].map(EventJSON.value) { text } else { nil }
    }
    guard let data = members["data"], let id = try text("eventId"),
      let type = try text("eventType")
    else {
      throw EventRefusedError(
        "The request is not an event: it has neither CloudEvents' attributes (ce-specversion and "
          + "the like) nor the context of a first-generation event."
      )
    }
    guard let mapped = types[type], let service = service(of: type) else {
      throw EventRefusedError("The event type \(type) of the first generation is not known.")
    }
    var event = CloudEvent(
      id: id,
      source: "",
      type: mapped,
      time: try text("timestamp"),
      dataContentType: "application/json",
      data: data
    )
    let resource = try Resource(context["resource"], service: service)
    try fill(&event, resource, domain: try members["domain"].flatMap(plain) ?? plainText(context))
    return event
  }

  private static func plainText(_ context: [String: [UInt8]]) throws -> String? {
    try context["domain"].flatMap(plain)
  }

  private static func plain(_ text: [UInt8]) throws -> String? {
    if case .string(let value) = try EventJSON.value(text) { value } else { nil }
  }

  // MARK: Resources

  /// The resource of a first-generation event.
  private struct Resource {
    var service: String
    var name: String

    init(_ text: [UInt8]?, service: String) throws {
      self.service = service
      name = ""
      guard let text else { return }
      switch try EventJSON.value(text) {
      case .string(let name): self.name = name
      case .map(let fields):
        if case .string(let name)? = fields["name"] { self.name = name }
        if case .string(let service)? = fields["service"], !service.isEmpty {
          self.service = service
        }
      default: throw EventRefusedError("The event's resource is neither text nor an object.")
      }
    }

    /// Splits the name at the first slash that is followed by `word` and another slash.
    func parts(around word: String) throws -> (source: String, subject: String) {
      guard let range = name.firstRange(of: "/\(word)/") else {
        throw EventRefusedError("The event's resource \(name) has no part \(word)/….")
      }
      let subject = name[name.index(after: range.lowerBound)...]
      return (String(name[..<range.lowerBound]), String(subject))
    }
  }

  /// Sets source and subject, and converts the data if its CloudEvents form differs.
  private static func fill(
    _ event: inout CloudEvent,
    _ resource: Resource,
    domain: String?
  ) throws {
    var source = resource.name
    switch resource.service {
    case "pubsub.googleapis.com":
      event.data = try message(event.data, id: event.id, time: event.time)
    case "firestore.googleapis.com":
      (source, event.subject) = try resource.parts(around: "documents")
    case "storage.googleapis.com":
      (source, event.subject) = try resource.parts(around: "objects")
      // The subject omits the generation, which the data contains too.
      if let subject = event.subject, let mark = subject.lastIndex(of: "#"),
        subject[mark...].dropFirst().allSatisfy(\.isWholeNumber)
      {
        event.subject = String(subject[..<mark])
      }
    case "firebase.googleapis.com":
      (source, event.subject) = try resource.parts(around: "events")
    case "firebasedatabase.googleapis.com":
      (source, event.subject) = try resource.parts(around: "refs")
      source = try databaseSource(source, domain: domain)
    case "firebaseauth.googleapis.com":
      let (uid, data) = try user(event.data)
      event.data = data
      event.subject = uid.map { "users/\($0)" }
    default: break
    }
    event.source = "//\(resource.service)/\(source)"
  }

  /// Returns `projects/_/instances/I` with the location that the database's domain names.
  private static func databaseSource(_ source: String, domain: String?) throws -> String {
    guard let domain, let first = domain.split(separator: ".").first else {
      throw EventRefusedError(
        "The event of a database has no domain, so its location is not known."
      )
    }
    let location = domain == "firebaseio.com" ? "us-central1" : String(first)
    return source.replacing(
      "projects/_/",
      with: "projects/_/locations/\(location)/",
      maxReplacements: 1
    )
  }

  // MARK: Data

  /// Returns a user with renamed timestamps, and the user's id.
  private static func user(_ data: [UInt8]) throws -> (uid: String?, data: [UInt8]) {
    guard case .map(var fields) = try EventJSON.value(data) else { return (nil, data) }
    if case .map(var metadata)? = fields["metadata"] {
      for (old, new) in [("createdAt", "createTime"), ("lastSignedInAt", "lastSignInTime")] {
        if let time = metadata.removeValue(forKey: old) { metadata[new] = time }
      }
      fields["metadata"] = .map(metadata)
    }
    var uid: String?
    if case .string(let text)? = fields["uid"] { uid = text }
    return (uid, try written(fields))
  }

  /// Returns a message in second-generation form: `{"message": {…}}` with its id and time.
  private static func message(_ data: [UInt8], id: String, time: String?) throws -> [UInt8] {
    guard case .map(var message) = try EventJSON.value(data) else {
      throw EventRefusedError("The event's message is not a JSON object.")
    }
    if message["messageId"] == nil { message["messageId"] = .string(id) }
    if message["publishTime"] == nil, let time { message["publishTime"] = .string(time) }
    return try written(["message": .map(message)])
  }

  private static func written(_ fields: MapValue) throws -> [UInt8] {
    do {
      return try JSONWriter.write(.map(fields))
    } catch {
      throw EventRefusedError("The event's data cannot be passed on: \(error).")
    }
  }

  /// Returns the event for a Pub/Sub push message, whose topic only the request's path can name.
  private static func pushed(_ members: [String: [UInt8]], path: String) throws -> CloudEvent {
    guard case .map(let message)? = try members["message"].map(EventJSON.value),
      case .string(let id)? = message["messageId"] ?? message["message_id"]
    else { throw EventRefusedError("The pushed message has no messageId.") }
    var time: String?
    if case .string(let text)? = message["publishTime"] ?? message["publish_time"] { time = text }
    let topic =
      path.firstRange(of: "projects/").map { path[$0.lowerBound...].prefix { $0 != "?" } }
      ?? "UNKNOWN_PUBSUB_TOPIC"
    var subscription: String?
    subscription = try members["subscription"].flatMap(plain)
    return CloudEvent(
      id: id,
      source: "//pubsub.googleapis.com/\(topic)",
      type: "google.cloud.pubsub.topic.v1.messagePublished",
      time: time,
      dataContentType: "application/json",
      data: try written([
        "message": .map(message), "subscription": subscription.map(FirestoreValue.string) ?? .null,
      ])
    )
  }

  // MARK: Tables

  private static func service(of type: String) -> String? {
    services.first { type.hasPrefix($0.prefix) }?.service
  }

  private static let services: [(prefix: String, service: String)] = [
    ("providers/cloud.firestore/", "firestore.googleapis.com"),
    ("providers/google.firebase.analytics/", "firebase.googleapis.com"),
    ("providers/firebase.auth/", "firebaseauth.googleapis.com"),
    ("providers/google.firebase.database/", "firebasedatabase.googleapis.com"),
    ("providers/cloud.pubsub/", "pubsub.googleapis.com"),
    ("providers/cloud.storage/", "storage.googleapis.com"),
    ("google.pubsub.", "pubsub.googleapis.com"),
    ("google.storage.", "storage.googleapis.com"),
  ]

  private static let types: [String: String] = {
    var types = [
      "google.pubsub.topic.publish": "google.cloud.pubsub.topic.v1.messagePublished",
      "providers/cloud.pubsub/eventTypes/topic.publish":
        "google.cloud.pubsub.topic.v1.messagePublished",
      "providers/cloud.storage/eventTypes/object.change":
        "google.cloud.storage.object.v1.finalized",
      "google.storage.object.finalize": "google.cloud.storage.object.v1.finalized",
      "google.storage.object.delete": "google.cloud.storage.object.v1.deleted",
      "google.storage.object.archive": "google.cloud.storage.object.v1.archived",
      "google.storage.object.metadataUpdate": "google.cloud.storage.object.v1.metadataUpdated",
      "providers/firebase.auth/eventTypes/user.create": "google.firebase.auth.user.v1.created",
      "providers/firebase.auth/eventTypes/user.delete": "google.firebase.auth.user.v1.deleted",
      "providers/google.firebase.analytics/eventTypes/event.log":
        "google.firebase.analytics.log.v1.written",
    ]
    let changes = [
      "create": "created", "update": "updated", "delete": "deleted", "write": "written",
    ]
    for (old, new) in changes {
      types["providers/cloud.firestore/eventTypes/document.\(old)"] =
        "google.cloud.firestore.document.v1.\(new)"
      types["providers/google.firebase.database/eventTypes/ref.\(old)"] =
        "google.firebase.database.ref.v1.\(new)"
    }
    return types
  }()
}
