import Events
import Foundation
import Identifiers
import StatusCodes

/// An event that another emulator posts to `trigger_multicast`.
///
/// It is a CloudEvent as JSON or a first-generation event. A first-generation type is translated to
/// the name that second-generation functions use.
struct MulticastEvent {
  var cloudEvent: CloudEvent

  /// Parses an event; throws `INVALID_ARGUMENT` if it has no type.
  init(_ body: [UInt8], isCloudEvent: Bool) throws {
    // Only a JSON object can have a type.
    let object = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
    guard let object, let type = object[isCloudEvent ? "type" : "eventType"] as? String else {
      throw StatusError.invalidArgument(
        "The body must be a JSON object with \(isCloudEvent ? "type" : "eventType")."
      )
    }
    let data = try object["data"].map {
      Array(try JSONSerialization.data(withJSONObject: $0, options: .fragmentsAllowed))
    }
    cloudEvent = CloudEvent(
      id: (object[isCloudEvent ? "id" : "eventId"] as? String) ?? RandomID.make(),
      source: Self.source(object, isCloudEvent: isCloudEvent),
      type: isCloudEvent ? type : Self.currentTypes[type] ?? type,
      subject: object["subject"] as? String,
      time: (object["time"] ?? object["timestamp"]) as? String,
      dataContentType: "application/json",
      dataSchema: object["dataschema"] as? String,
      extensions: isCloudEvent ? Self.extensions(object) : [:],
      data: data ?? []
    )
  }

  private static func source(_ object: [String: Any], isCloudEvent: Bool) -> String {
    if isCloudEvent { return object["source"] as? String ?? "//unknown" }
    guard let resource = object["resource"] as? [String: Any] else {
      return object["resource"] as? String ?? "//unknown"
    }
    return "//\(resource["service"] as? String ?? "unknown")/\(resource["name"] as? String ?? "")"
  }

  private static func extensions(_ object: [String: Any]) -> [String: String] {
    object.compactMapValues { $0 as? String }.filter { !attributes.contains($0.key) }
  }

  private static let attributes: Set = [
    "specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema",
    "data", "data_base64",
  ]

  /// The second-generation event types, by the first-generation names that emulators send.
  ///
  /// The types of Cloud Storage are missing, because its emulator sends each event in both forms.
  private static let currentTypes = [
    "providers/firebase.auth/eventTypes/user.create": "google.firebase.auth.user.v1.created",
    "providers/firebase.auth/eventTypes/user.delete": "google.firebase.auth.user.v1.deleted",
  ]
}
