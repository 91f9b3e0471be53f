import Foundation

/// Any JSON value.
package enum JSON: Sendable, Hashable {
  case null
  case boolean(Bool)
  case number(Double)
  case string(String)
  case array([JSON])
  case object([String: JSON])

  /// The property `key`; nil if it is missing or this value is not an object.
  package subscript(key: String) -> JSON? {
    if case .object(let properties) = self { properties[key] } else { nil }
  }

  package var text: String? { if case .string(let text) = self { text } else { nil } }
  package var items: [JSON]? { if case .array(let items) = self { items } else { nil } }
  package var number: Double? { if case .number(let number) = self { number } else { nil } }
  package var properties: [String: JSON]? {
    if case .object(let properties) = self { properties } else { nil }
  }
  var isTrue: Bool { self == .boolean(true) }

  /// The value as JSON text with sorted keys, so that equal values have equal text.
  package var serialized: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Encoding fails only for numbers that are not finite, and JSON cannot contain them.
    return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "null"
  }
}

extension JSON: Codable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    // Each `try?` tests one type; the last attempt throws the error.
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(Bool.self) {
      self = .boolean(value)
    } else if let value = try? container.decode([JSON].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSON].self))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .boolean(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .array(let value): try container.encode(value)
    case .object(let value): try container.encode(value)
    }
  }

  /// Decodes a control message and throws on unknown keys, to catch typing errors.
  static func decode<Message: Codable>(_ type: Message.Type, from bytes: [UInt8]) throws
    -> Message
  {
    let data = Data(bytes)
    let message = try JSONDecoder().decode(type, from: data)
    let understood = try JSONDecoder().decode(JSON.self, from: JSONEncoder().encode(message))
    if let stranger = try JSONDecoder().decode(JSON.self, from: data).stranger(to: understood) {
      throw StubError("the stub knows no \"\(stranger)\" there")
    }
    return message
  }

  /// The first key that is missing from `other`, which otherwise has the same structure.
  private func stranger(to other: JSON) -> String? {
    switch (self, other) {
    case (.object(let mine), .object(let others)):
      for (key, value) in mine where value != .null {
        guard let found = others[key] else { return key }
        if let stranger = value.stranger(to: found) { return stranger }
      }
    case (.array(let mine), .array(let others)):
      for (value, found) in zip(mine, others) {
        if let stranger = value.stranger(to: found) { return stranger }
      }
    default: break
    }
    return nil
  }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByArrayLiteral,
  ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
  package init(stringLiteral value: String) { self = .string(value) }
  package init(booleanLiteral value: Bool) { self = .boolean(value) }
  package init(integerLiteral value: Int) { self = .number(Double(value)) }
  package init(floatLiteral value: Double) { self = .number(value) }
  package init(arrayLiteral elements: JSON...) { self = .array(elements) }
  package init(dictionaryLiteral elements: (String, JSON)...) {
    self = .object(Dictionary(elements) { $1 })
  }
  package init(nilLiteral: ()) { self = .null }
  init(_ number: Int) { self = .number(Double(number)) }
}
