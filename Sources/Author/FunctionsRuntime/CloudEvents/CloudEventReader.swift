import DocumentModel
import Events
import HTTPSupport
import HTTPTypes
import Invocation
import JSONText
import NIOCore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A reader of CloudEvents from HTTP requests, in every form that Google or its emulators send.
///
/// These are CloudEvents 1.0 in binary and in structured mode, the JSON of first-generation
/// functions, and Pub/Sub push messages. The last two are converted to CloudEvents as in other
/// Functions Frameworks.
enum CloudEventReader {
  /// Returns the event in a request; throws `EventRefusedError` if it is not a valid event.
  static func event(of request: InvocationRequest) throws -> CloudEvent {
    guard request.head.method == .post else {
      throw EventRefusedError("An event comes by POST, not \(request.head.method.rawValue).")
    }
    let body = Array(request.wholeBody.readableBytesView)
    let contentType = request.head.headerFields[.contentType] ?? ""
    let mediaType = MediaType(contentType)
    var event: CloudEvent
    if mediaType.text == "application/cloudevents+json" {
      event = try structured(body)
    } else if mediaType.text.hasPrefix("application/cloudevents") {
      throw EventRefusedError(
        "Events come one by one, as application/cloudevents+json or in headers."
      )
    } else if isBinary(request.head.headerFields) || !mediaType.isJSON {
      event = try binary(request.head.headerFields, body)
    } else {
      event = try LegacyEvent.event(body, path: request.head.path ?? "/")
    }
    // Google's Firestore emulator repeats `projects/` in the source.
    event.source.replace("projects/projects/", with: "projects/")
    return event
  }

  // MARK: Binary mode

  private static func isBinary(_ fields: HTTPFields) -> Bool {
    fields.contains { $0.name.canonicalName.hasPrefix(attributePrefix) }
  }

  private static func binary(_ fields: HTTPFields, _ body: [UInt8]) throws -> CloudEvent {
    var attributes: [String: String] = [:]
    for field in fields where field.name.canonicalName.hasPrefix(attributePrefix) {
      let name = String(field.name.canonicalName.dropFirst(attributePrefix.count))
      // A value that does not decode was sent without percent-encoding and is used as it is.
      attributes[name] = percentDecoded(field.value) ?? field.value
    }
    return try event(attributes, data: body, contentType: fields[.contentType]) {
      "The header ce-\($0)"
    }
  }

  private static let attributePrefix = "ce-"

  // MARK: Structured mode

  private static func structured(_ body: [UInt8]) throws -> CloudEvent {
    let members = try EventJSON.members(of: body)
    var attributes: [String: String] = [:]
    for (name, text) in members where name != "data" && name != "data_base64" {
      switch try EventJSON.value(text) {
      case .string(let value): attributes[name] = value
      case .integer(let value): attributes[name] = String(value)
      case .boolean(let value): attributes[name] = String(value)
      case .null: break
      default:
        throw EventRefusedError(
          "The event's attribute \(name) is neither text nor number nor boolean."
        )
      }
    }
    let contentType = attributes.removeValue(forKey: "datacontenttype")
    let data = try data(members, contentType: contentType)
    return try event(attributes, data: data, contentType: contentType ?? "application/json") {
      "The event's attribute \($0)"
    }
  }

  private static func data(
    _ members: [String: [UInt8]],
    contentType: String?
  ) throws -> [UInt8] {
    switch (members["data"], members["data_base64"]) {
    case (nil, nil): return []
    case (_?, _?): throw EventRefusedError("The event has both data and data_base64; send one.")
    case (nil, let text?):
      guard case .string(let base64) = try EventJSON.value(text),
        let data = Data(base64Encoded: base64)
      else { throw EventRefusedError("The event's data_base64 is not base64 text.") }
      return Array(data)
    case (let text?, nil):
      // Structured mode embeds data of a type other than JSON as a plain string.
      if let contentType, !MediaType(contentType).isJSON,
        case .string(let plain) = try EventJSON.value(text)
      {
        return Array(plain.utf8)
      }
      return text
    }
  }

  //MARK: Both modes

  private static func event(
    _ attributes: [String: String],
    data: [UInt8],
    contentType: String?,
    described: (String) -> String
  ) throws -> CloudEvent {
    var attributes = attributes
    func required(_ name: String) throws -> String {
      guard let value = attributes.removeValue(forKey: name), !value.isEmpty else {
        throw EventRefusedError("\(described(name)) is missing, which every CloudEvent has.")
      }
      return value
    }
    let version = try required("specversion")
    guard version == "1.0" else {
      throw EventRefusedError("\(described("specversion")) must be 1.0, not \(version).")
    }
    let type = try required("type")
    let id = try required("id")
    let source = try required("source")
    if let time = attributes["time"], Timestamp(time) == nil {
      throw EventRefusedError(
        "\(described("time")) is \(time), which is not of the form of RFC 3339."
      )
    }
    return CloudEvent(
      id: id,
      source: source,
      type: type,
      subject: attributes.removeValue(forKey: "subject"),
      time: attributes.removeValue(forKey: "time"),
      dataContentType: contentType,
      dataSchema: attributes.removeValue(forKey: "dataschema"),
      extensions: attributes,
      data: data
    )
  }
}

/// A content type without its parameters.
struct MediaType {
  /// The type in lowercase, such as `application/json`; empty if the header is empty.
  let text: String

  init(_ header: String) {
    text = header.prefix { $0 != ";" }.split(separator: " ").joined().lowercased()
  }

  var isJSON: Bool { text == "application/json" || text == "text/json" || text.hasSuffix("+json") }
}

/// JSON reading functions for events, which report every error as an `EventRefusedError`.
enum EventJSON {
  /// Returns the members of an object, each with its original text.
  static func members(of text: [UInt8]) throws -> [String: [UInt8]] {
    do {
      guard let members = try jsonMembers(of: text, loneSurrogates: .replaced) else {
        throw EventRefusedError("The event is not a JSON object.")
      }
      return members
    } catch let error as JSONSyntaxError {
      throw EventRefusedError("The event is not JSON: \(error.reason) at byte \(error.offset).")
    }
  }

  /// Returns the value of a JSON text.
  static func value(_ text: [UInt8]) throws -> FirestoreValue {
    guard !text.isEmpty else {
      throw EventRefusedError(#"The event has no data; give it some, as in {"data": {}}."#)
    }
    do {
      return try JSONReader.read(text, unwrapsIntegers: false)
    } catch let error as JSONSyntaxError {
      throw EventRefusedError(
        "The event's data is not JSON: \(error.reason) at byte \(error.offset)."
      )
    }
  }
}
