package import StatusCodes
package import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A converter from JSON to messages with the behavior and the errors of Google's front ends.
///
/// It accepts the same input: both names of a field, numbers as strings, names of enumerations in
/// any case, a single value for a list, and wrapped numbers with or without their object. Invalid
/// values are reported together with their places, at most a hundred of them. A syntax error ends
/// the parsing. The sources are protobuf's `ProtoStreamObjectWriter` and recorded responses.
package struct JSONTranscoder {
  private let schema: MessageSchema
  private var cursor: JSONCursor
  private var path: [Step] = []
  private var violations: [FieldViolation] = []

  private struct Step {
    var name: String
    var index: Int?
  }

  /// Parses a message; an empty payload is an empty message.
  ///
  /// `root` is the place of the message in the whole request. Throws `INVALID_ARGUMENT` with a
  /// violation for each error.
  package static func message<M: Message>(
    _ json: [UInt8],
    at root: String? = nil,
    of schema: MessageSchema
  ) throws(StatusError) -> M {
    guard !json.isEmpty else { return M() }
    guard let type = schema.type(M.protoMessageName) else {
      throw StatusError(.internal, "There is no descriptor of \(M.protoMessageName).")
    }
    var transcoder = JSONTranscoder(schema: schema, cursor: try JSONCursor(json))
    if let root { transcoder.path.append(Step(name: root)) }
    var bytes: [UInt8] = []
    try transcoder.root(type, into: &bytes)
    guard transcoder.violations.isEmpty else {
      throw StatusError(
        .invalidArgument,
        transcoder.violations.map(\.description).joined(separator: "\n"),
        details: [.badRequest(transcoder.violations)]
      )
    }
    do {
      return try M(serializedBytes: bytes)
    } catch {
      throw StatusError(.internal, "A transcoded message cannot be read.")
    }
  }

  // MARK: Messages

  private mutating func root(_ type: MessageType, into bytes: inout [UInt8]) throws(StatusError) {
    switch try cursor.peek() {
    case .object: try message(type, into: &bytes)
    case .null: try cursor.skip()
    default:
      try cursor.skip()
      refuse(name: "", "Root element must be a message.")
    }
    try cursor.end()
  }

  /// Parses an object; the cursor is at its opening bracket.
  private mutating func message(
    _ type: MessageType,
    into bytes: inout [UInt8]
  ) throws(StatusError) {
    try cursor.beginObject()
    var isFirst = true
    var oneofs: Set<Int> = []
    while let key = try cursor.key(isFirst: isFirst) {
      isFirst = false
      let spelled = String(decoding: key, as: UTF8.self)
      guard let field = type.field(spelled) else {
        refuse(name: spelled, "Cannot find field.")
        try cursor.skip()
        continue
      }
      let token = try cursor.peek()
      if token == .null, !Self.takesNull(field) {
        try cursor.skip()
        continue
      }
      if let oneof = field.oneof, !oneofs.insert(oneof).inserted {
        refuse(
          "oneof",
          "oneof field '\(type.oneofs[oneof])' is already set. Cannot set '\(spelled)'"
        )
        try cursor.skip()
        continue
      }
      try self.field(field, spelled, token, into: &bytes)
    }
  }

  /// Returns true if null is a value of the field; otherwise null means that the field is absent.
  private static func takesNull(_ field: MessageField) -> Bool {
    if case .enum("google.protobuf.NullValue", _) = field.kind { true } else { false }
  }

  private mutating func field(
    _ field: MessageField,
    _ spelled: String,
    _ token: JSONCursor.Token,
    into bytes: inout [UInt8]
  ) throws(StatusError) {
    if case .message(let name) = field.kind, field.isRepeated, let type = schema.type(name),
      type.isMapEntry
    {
      return try map(field, type, spelled, token, into: &bytes)
    }
    guard token == .array else {
      path.append(Step(name: field.name, index: field.isRepeated ? 0 : nil))
      defer { path.removeLast() }
      return try value(field, spelled, token, into: &bytes)
    }
    guard field.isRepeated else {
      refuse(name: spelled, "Proto field is not repeating, cannot start list.")
      return try cursor.skip()
    }
    try cursor.beginArray()
    var index = 0
    while try cursor.element(isFirst: index == 0) {
      let token = try cursor.peek()
      defer { index += 1 }
      if token == .null, !Self.takesNull(field) {
        try cursor.skip()
        continue
      }
      path.append(Step(name: field.name, index: index))
      defer { path.removeLast() }
      if token == .array {
        refuse(name: spelled, "Proto field is not repeating, cannot start list.")
        try cursor.skip()
      } else {
        try value(field, spelled, token, into: &bytes)
      }
    }
  }

  private mutating func map(
    _ field: MessageField,
    _ entry: MessageType,
    _ spelled: String,
    _ token: JSONCursor.Token,
    into bytes: inout [UInt8]
  ) throws(StatusError) {
    guard token == .object else {
      if token == .array {
        refuse(name: spelled, "Cannot bind a list to map for field '\(spelled)'.")
        return try cursor.skip()
      }
      path.append(Step(name: field.name))
      defer { path.removeLast() }
      return refuse(field.kind.typeName, try scalar(token).spelled)
    }
    guard let valueField = entry.field("value") else { return try cursor.skip() }
    try cursor.beginObject()
    var index = 0
    var keys: Set<ArraySlice<UInt8>> = []
    while let key = try cursor.key(isFirst: index == 0) {
      path.append(Step(name: field.name, index: index))
      defer { path.removeLast() }
      index += 1
      guard keys.insert(key).inserted else {
        let text = String(decoding: key, as: UTF8.self)
        refuse(name: text, "Repeated map key: '\(text)' is already set.")
        try cursor.skip()
        continue
      }
      var content: [UInt8] = []
      content.append(tag: 1, wire: 2)
      content.append(data: key)
      let token = try cursor.peek()
      if token == .null {
        try cursor.skip()
      } else {
        try self.field(valueField, "value", token, into: &content)
      }
      bytes.append(tag: field.number, wire: 2)
      bytes.append(data: content)
    }
  }

  // MARK: Values

  /// Parses one value; the last step of the path is the value's own.
  private mutating func value(
    _ field: MessageField,
    _ spelled: String,
    _ token: JSONCursor.Token,
    into bytes: inout [UInt8]
  ) throws(StatusError) {
    guard case .message(let name) = field.kind else {
      guard token != .object else {
        let step = path.removeLast()
        refuse(field.name, "Starting an object on a scalar field")
        path.append(step)
        return try cursor.skip()
      }
      return scalar(try scalar(token), of: field, into: &bytes)
    }
    guard let type = schema.type(name) else { return try cursor.skip() }
    var content: [UInt8] = []
    if token == .object {
      try message(type, into: &content)
    } else if name == "google.protobuf.Timestamp" {
      guard let time = timestamp(try scalar(token), spelled) else { return }
      content = time
    } else if Self.wrappers.contains(name), let wrapped = type.field("value") {
      path.append(Step(name: "value"))
      defer { path.removeLast() }
      scalar(try scalar(token), of: wrapped, into: &content)
    } else {
      return refuse(field.kind.typeName, try scalar(token).spelled)
    }
    bytes.append(tag: field.number, wire: 2)
    bytes.append(data: content)
  }

  private static let wrappers = Set(
    ["Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes"].map {
      "google.protobuf.\($0)Value"
    }
  )

  /// Parses a value that is neither an object nor an array.
  private mutating func scalar(_ token: JSONCursor.Token) throws(StatusError) -> JSONScalar {
    switch token {
    case .string: return .string(try cursor.string())
    case .number: return .number(try cursor.number())
    case .true, .false:
      try cursor.skip()
      return .boolean(token == .true)
    case .null, .object, .array:
      try cursor.skip()
      return .null
    }
  }

  private mutating func scalar(
    _ scalar: JSONScalar,
    of field: MessageField,
    into bytes: inout [UInt8]
  ) {
    switch scalar.encoded(as: field.kind) {
    case .some(let encoded):
      bytes.append(tag: field.number, wire: encoded.wire)
      bytes += encoded.bytes
    case nil:
      if case .bytes = field.kind, case .string = scalar {
        refuse(field.kind.typeName, "Base64 decoding failed for \(scalar.spelled)")
      } else {
        refuse(field.kind.typeName, scalar.spelled)
      }
    }
  }

  private mutating func timestamp(_ scalar: JSONScalar, _ spelled: String) -> [UInt8]? {
    let type = "type.googleapis.com/google.protobuf.Timestamp"
    guard case .string(let bytes) = scalar else {
      refuse(
        type,
        "Field '\(spelled)', Invalid data type for timestamp, value is \(scalar.spelled)"
      )
      return nil
    }
    let text = String(decoding: bytes, as: UTF8.self)
    do throws(TimestampError) {
      let time = try JSONTranscoding.timestamp(text)
      var bytes: [UInt8] = []
      if time.seconds != 0 { bytes.append(field: 1, varint: UInt64(bitPattern: time.seconds)) }
      if time.nanos != 0 { bytes.append(field: 2, varint: UInt64(time.nanos)) }
      return bytes
    } catch {
      refuse(type, "Field '\(spelled)', \(error.rawValue)")
      return nil
    }
  }

  // MARK: Violations

  /// The maximum number of reported violations; a payload can have a million.
  private static let violationsMax = 100
  /// The maximum number of characters quoted from the payload in one violation.
  private static let quotedMax = 2000

  private mutating func refuse(_ type: String, _ words: String) {
    guard violations.count < Self.violationsMax else { return }
    violations.append(.invalidValue(at: place, type, String(words.prefix(Self.quotedMax))))
  }

  private mutating func refuse(name: String, _ words: String) {
    guard violations.count < Self.violationsMax else { return }
    let name = String(name.prefix(Self.quotedMax))
    violations.append(.unknownName(name, at: place, String(words.prefix(Self.quotedMax))))
  }

  /// The text of the current path, such as `writes[0].update`; nil at the root.
  private var place: String? {
    path.isEmpty
      ? nil
      : path.map { step in step.name + (step.index.map { "[\($0)]" } ?? "") }.joined(separator: ".")
  }
}
