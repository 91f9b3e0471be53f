import Events
import Foundation
import Identifiers
import JSONText
import Manifests
import StatusCodes

/// The body of `POST /hearth/v1/functions/{name}/fire` for events other than document changes.
struct FiredCloudEvent {
  var event: CloudEvent

  /// Parses `{"event": CLOUDEVENT}` in JSON; throws `INVALID_ARGUMENT`.
  ///
  /// Missing attributes get default values; the default type is the trigger's. The data of the
  /// event is `data` in any JSON form, or `data_base64`.
  init(
    json: [UInt8],
    for function: String,
    _ trigger: FunctionEndpoint.EventTrigger
  ) throws {
    // The error below shows the right form.
    guard let object = JSONObjectText(parsing: json)?.object("event") else {
      throw StatusError.invalidArgument(
        "\(function) waits for events of type \(trigger.eventType): give one with --event FILE, a "
          + #"CloudEvent in JSON such as {"data": {"key": "value"}}."#
      )
    }
    let takesAll = trigger.eventType == "*"
    guard let type = object.text("type") ?? (takesAll ? nil : trigger.eventType),
      object["type"] == nil || object.text("type") != nil
    else {
      throw StatusError.invalidArgument(
        "The event has no type that is a string; \(function) takes events of "
          + (takesAll ? "every type." : "type \(trigger.eventType).")
      )
    }
    guard takesAll || type == trigger.eventType else {
      throw StatusError.invalidArgument(
        "\(function) waits for events of type \(trigger.eventType), and this one's is \(type)."
      )
    }
    var data: [UInt8] = []
    if let value = object["data"] {
      data = value
    } else if let text = object.text("data_base64") {
      guard let bytes = Data(base64Encoded: text) else {
        throw StatusError.invalidArgument("The event's data_base64 is not base64.")
      }
      data = Array(bytes)
    }
    // Filter attributes that the event does not contain are added, so that the filters match.
    var extensions = trigger.eventFilters
    for name in object.memberNames where !Self.attributes.contains(name) {
      extensions[name] = object.text(name) ?? String(decoding: object[name] ?? [], as: UTF8.self)
    }
    event = CloudEvent(
      id: object.text("id") ?? RandomID.make(),
      source: object.text("source") ?? "//hearth/fire",
      type: type,
      subject: object.text("subject"),
      time: object.text("time") ?? Date.now.formatted(.iso8601),
      dataContentType: object.text("datacontenttype") ?? "application/json",
      dataSchema: object.text("dataschema"),
      extensions: extensions,
      data: data
    )
  }

  private static let attributes: Set = [
    "specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema",
    "data", "data_base64",
  ]
}
