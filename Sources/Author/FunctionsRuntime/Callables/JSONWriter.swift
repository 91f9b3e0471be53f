import DocumentModel
import JSONText

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A writer of values as JSON with sorted keys, so that equal values produce equal bytes.
///
/// Integers that JavaScript cannot represent exactly are wrapped as in Google's JSON: `{"@type":
/// "type.googleapis.com/google.protobuf.Int64Value", "value": "…"}`.
struct JSONWriter {
  // The largest integer that JavaScript represents exactly, `Number.MAX_SAFE_INTEGER`.
  private static let safeInteger: Int64 = 9_007_199_254_740_991

  private(set) var bytes: [UInt8] = []
  private let wrapsIntegers: Bool

  /// Creates a writer without output.
  ///
  /// Without wrapping, large integers are written as plain digits.
  init(wrapsIntegers: Bool = true) {
    self.wrapsIntegers = wrapsIntegers
  }

  /// Returns the JSON text of a value.
  ///
  /// Throws `ValueCodingError` for a number that is not finite.
  static func write(_ value: FirestoreValue) throws(ValueCodingError) -> [UInt8] {
    var writer = JSONWriter()
    try writer.append(value)
    return writer.bytes
  }

  mutating func append(syntax: StaticString) {
    bytes.append(
      contentsOf: UnsafeBufferPointer(
        start: syntax.utf8Start,
        count: syntax.utf8CodeUnitCount
      )
    )
  }

  /// Appends another writer's output.
  mutating func append(json: [UInt8]) {
    bytes.append(contentsOf: json)
  }

  mutating func append(_ value: FirestoreValue) throws(ValueCodingError) {
    do {
      try appendChecked(value)
    } catch let error where error.path.hasPrefix(".") {
      throw ValueCodingError(path: String(error.path.dropFirst()), reason: error.reason)
    }
  }

  private mutating func appendChecked(_ value: FirestoreValue) throws(ValueCodingError) {
    switch value {
    case .null: append(syntax: "null")
    case .boolean(let boolean): append(syntax: boolean ? "true" : "false")
    case .integer(let integer): append(integer)
    case .double(let double):
      guard double.isFinite else {
        throw ValueCodingError(path: "", reason: "is \(double), which JSON cannot express")
      }
      append(raw: double.description)
    case .timestamp(let timestamp): append(timestamp.description)
    case .string(let text): append(text)
    case .reference(let name): append(name.description)
    case .bytes(let bytes): append(Data(bytes).base64EncodedString())
    case .geoPoint(let point):
      try appendMap([
        "latitude": .double(point.latitude), "longitude": .double(point.longitude),
      ])
    case .vector(let doubles): try appendArray(doubles.map(FirestoreValue.double))
    case .array(let elements): try appendArray(elements)
    case .map(let fields):
      if !wrapsIntegers, let digits = WrappedInteger.digits(of: fields) {
        append(raw: digits)
      } else {
        try appendMap(fields)
      }
    }
  }

  private mutating func append(_ integer: Int64) {
    guard wrapsIntegers, integer.magnitude > Self.safeInteger.magnitude else {
      return append(raw: integer.description)
    }
    append(syntax: #"{"@type":"#)
    append(WrappedInteger.signed)
    append(syntax: #","value":""#)
    append(raw: integer.description)
    append(syntax: #""}"#)
  }

  private mutating func appendArray(_ elements: [FirestoreValue]) throws(ValueCodingError) {
    append(syntax: "[")
    for (index, element) in elements.enumerated() {
      if index > 0 { append(syntax: ",") }
      do {
        try appendChecked(element)
      } catch {
        throw ValueCodingError(path: "[\(index)]\(error.path)", reason: error.reason)
      }
    }
    append(syntax: "]")
  }

  private mutating func appendMap(_ fields: MapValue) throws(ValueCodingError) {
    append(syntax: "{")
    var isFirst = true
    for (key, field) in fields {
      if !isFirst { append(syntax: ",") }
      isFirst = false
      append(key)
      append(syntax: ":")
      do {
        try appendChecked(field)
      } catch {
        throw ValueCodingError(path: ".\(key)\(error.path)", reason: error.reason)
      }
    }
    append(syntax: "}")
  }

  /// Appends a string as a quoted JSON string.
  mutating func append(_ text: String) {
    bytes.appendJSONQuoted(text)
  }

  private mutating func append(raw text: String) {
    bytes.append(contentsOf: text.utf8)
  }
}
