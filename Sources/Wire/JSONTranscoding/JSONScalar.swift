package import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A JSON value that is neither an object nor an array.
enum JSONScalar {
  case string(ArraySlice<UInt8>)
  /// A number as written.
  case number(String)
  case boolean(Bool)
  case null

  /// The value as shown in error messages.
  var spelled: String {
    switch self {
    case .string(let bytes): "\"\(String(decoding: bytes, as: UTF8.self))\""
    case .number(let text): text
    case .boolean(let flag): flag ? "true" : "false"
    case .null: "null"
    }
  }

  /// Returns the wire encoding as a kind of field; nil if the field cannot hold the value.
  func encoded(as kind: MessageField.Kind) -> (wire: Int, bytes: [UInt8])? {
    var bytes: [UInt8] = []
    switch kind {
    case .int32:
      guard let number = integer(Int32.self) else { return nil }
      bytes.append(varint: UInt64(bitPattern: Int64(number)))
      return (0, bytes)
    case .int64:
      guard let number = integer(Int64.self) else { return nil }
      bytes.append(varint: UInt64(bitPattern: number))
      return (0, bytes)
    case .uint32:
      guard let number = integer(UInt32.self) else { return nil }
      bytes.append(varint: UInt64(number))
      return (0, bytes)
    case .uint64:
      guard let number = integer(UInt64.self) else { return nil }
      bytes.append(varint: number)
      return (0, bytes)
    case .bool:
      guard let flag else { return nil }
      return (0, [flag ? 1 : 0])
    case .enum(_, let numbers):
      guard let number = number(in: numbers) else { return nil }
      bytes.append(varint: UInt64(bitPattern: Int64(number)))
      return (0, bytes)
    case .double:
      guard let double else { return nil }
      return (1, withUnsafeBytes(of: double.bitPattern.littleEndian) { Array($0) })
    case .float:
      guard let double, Float(double).isFinite || !double.isFinite else { return nil }
      return (5, withUnsafeBytes(of: Float(double).bitPattern.littleEndian) { Array($0) })
    case .string:
      guard case .string(let text) = self else { return nil }
      bytes.append(data: text)
      return (2, bytes)
    case .bytes:
      guard case .string(let text) = self, let data = base64Decoded(text) else { return nil }
      bytes.append(data: data)
      return (2, bytes)
    case .message: return nil
    }
  }

  private func integer<Number: FixedWidthInteger>(_: Number.Type) -> Number? {
    let text: String
    switch self {
    case .string(let bytes): text = String(decoding: bytes, as: UTF8.self)
    case .number(let number): text = number
    case .boolean, .null: return nil
    }
    if let number = Number(text) { return number }
    // From 2^53 on, a double also stands for other whole numbers.
    guard let double = Self.decimal(text), abs(double) < 0x1p53 else { return nil }
    return Number(exactly: double)
  }

  private var double: Double? {
    switch self {
    case .number(let text): return Double(text)
    case .string(let bytes):
      switch String(decoding: bytes, as: UTF8.self) {
      case "NaN": return .nan
      case "Infinity": return .infinity
      case "-Infinity": return -.infinity
      case let text:
        return Self.decimal(text).flatMap { $0.isFinite ? $0 : nil }
      }
    case .boolean, .null: return nil
    }
  }

  /// Parses a decimal number.
  ///
  /// `Double` alone would also accept hexadecimal numbers and other names of infinity.
  private static func decimal(_ text: String) -> Double? {
    text.utf8.allSatisfy { "0123456789+-.eE".utf8.contains($0) } ? Double(text) : nil
  }

  private var flag: Bool? {
    switch self {
    case .boolean(let flag): flag
    case .string(let bytes):
      switch String(decoding: bytes, as: UTF8.self) {
      case "true": true
      case "false": false
      default: nil
      }
    case .number, .null: nil
    }
  }

  /// Returns the number of an enumeration value, given by name or by any number.
  private func number(in numbers: [String: Int32]) -> Int32? {
    guard case .string(let bytes) = self else {
      if case .null = self { return 0 }
      return integer(Int32.self)
    }
    let text = String(decoding: bytes, as: UTF8.self)
    return numbers[text] ?? Int32(text)
      ?? numbers[text.uppercased().replacing("-", with: "_")]
  }
}

/// The reason why a text is not a valid time.
package enum TimestampError: String, Error {
  case format =
    "Illegal timestamp format; timestamps must end with 'Z' or have a valid timezone offset."
  case range = "Timestamp value exceeds limits"
}

/// The seconds since 1970 of the years 0001 to 9999.
private let secondsOfYears: ClosedRange<Int64> = -62_135_596_800...253_402_300_799

/// Parses a time in RFC 3339.
package func timestamp(_ text: String) throws(TimestampError) -> Google_Protobuf_Timestamp {
  let isPlain = !text.contains { $0 == "\"" || $0 == "\\" }
  if isPlain, let time = try? Google_Protobuf_Timestamp(jsonString: "\"\(text)\"") { return time }
  // What the library cannot parse is tried in other forms; the last one throws.
  if let offset = text.wholeMatch(of: /(.*T.*)([+-])(\d\d):(\d\d)/),
    let hours = Int(offset.3), let minutes = Int(offset.4), hours < 24, minutes < 60,
    isPlain, var time = try? Google_Protobuf_Timestamp(jsonString: "\"\(offset.1)Z\"")
  {
    // Handles offsets that the library does not support, such as that of the Line Islands.
    time.seconds += Int64((offset.2 == "+" ? -60 : 60) * (hours * 60 + minutes))
    guard secondsOfYears.contains(time.seconds) else { throw .range }
    return time
  }
  let year = text.prefix { $0.isASCII && $0.isNumber }
  let isDated = text.dropFirst(year.count).starts(with: /-\d\d-\d\dT/)
  throw isDated && (year.count > 4 || year == "0000") ? .range : .format
}

/// Decodes base64 in either alphabet, with or without padding; nil if the text is malformed.
package func base64Decoded(_ text: some Sequence<UInt8>) -> [UInt8]? {
  var standard = text.map { byte -> UInt8 in
    switch byte {
    case UInt8(ascii: "-"): UInt8(ascii: "+")
    case UInt8(ascii: "_"): UInt8(ascii: "/")
    default: byte
    }
  }
  while standard.last == UInt8(ascii: "=") { standard.removeLast() }
  standard += Array(repeating: UInt8(ascii: "="), count: (4 - standard.count % 4) % 4)
  return Data(base64Encoded: Data(standard)).map { Array($0) }
}

extension [UInt8] {
  mutating func append(varint number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      append(UInt8(rest & 0x7F) | 0x80)
      rest >>= 7
    }
    append(UInt8(rest))
  }

  mutating func append(tag number: Int, wire: Int) { append(varint: UInt64(number << 3 | wire)) }

  mutating func append(field number: Int, varint value: UInt64) {
    append(tag: number, wire: 0)
    append(varint: value)
  }

  mutating func append(data: some Collection<UInt8>) {
    append(varint: UInt64(data.count))
    append(contentsOf: data)
  }
}
