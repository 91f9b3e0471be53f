import Cryptography
import DocumentModel
import Foundation

/// The functions of `math`, `timestamp`, `duration`, `latlng` and `hashing`.
enum PackageFunctions {
  /// Returns the number of parameters of a function; nil if there is no such function.
  static func argumentCount(_ package: String, _ name: String) -> Int? {
    counts[package]?[name]
  }

  private static let counts: [String: [String: Int]] = [
    "math": [
      "abs": 1, "ceil": 1, "floor": 1, "round": 1, "sqrt": 1, "isNaN": 1, "pow": 2,
    ],
    "timestamp": ["date": 3, "value": 1],
    "duration": ["value": 2, "time": 4, "abs": 1],
    "latlng": ["value": 2],
    "hashing": ["md5": 1, "sha256": 1, "crc32": 1, "crc32c": 1],
  ]

  static func call(
    _ package: String,
    _ name: String,
    _ arguments: [RuleValue]
  ) throws(OperationError) -> RuleValue {
    let result: RuleValue? =
      switch package {
      case "math": try math(name, arguments)
      case "timestamp": try timestamp(name, arguments)
      case "duration": try duration(name, arguments)
      case "latlng": try latlng(arguments)
      default: hash(name, arguments[0])
      }
    guard let result else {
      let types = arguments.map(\.typeName).joined(separator: ", ")
      throw .unsupported("\(package).\(name)(\(types))")
    }
    return result
  }

  private static func math(
    _ name: String,
    _ arguments: [RuleValue]
  ) throws(OperationError) -> RuleValue? {
    guard let number = arguments[0].double else { return nil }
    switch name {
    case "abs":
      guard case .int(let whole) = arguments[0] else { return .float(number.magnitude) }
      return .int(Int64(truncatingIfNeeded: whole.magnitude))
    // Contrary to the documentation, these two functions do not return an `int`.
    case "ceil": return .float(number.rounded(.up))
    case "floor": return .float(number.rounded(.down))
    case "round":
      guard case .float = arguments[0] else { return arguments[0] }
      let below = number.rounded(.down)
      return .int(RuleConversions.whole(number - below < 0.5 ? below : below + 1))
    case "sqrt": return .float(number.squareRoot())
    case "isNaN": return .bool(number.isNaN)
    case "pow": return arguments[1].double.map { .float(Foundation.pow(number, $0)) }
    default: return nil
    }
  }

  private static func timestamp(
    _ name: String,
    _ arguments: [RuleValue]
  ) throws(OperationError) -> RuleValue? {
    guard let numbers = integers(arguments) else { return nil }
    if name == "value" {
      return .timestamp(try RuleTimestamp(totalNanos: Int128(numbers[0]) * 1_000_000))
    }
    let (year, month, day) = (numbers[0], numbers[1], numbers[2])
    guard (1...9999).contains(year), (1...12).contains(month), day >= 1,
      day <= Timestamp.daysIn(month: month, year: year)
    else {
      throw OperationError(
        message: "Date is not valid. year: \(year), month: \(month) day: \(day)."
      )
    }
    let seconds = Timestamp.days(year: year, month: month, day: day) * 86_400
    return .timestamp(RuleTimestamp(seconds: seconds, nanos: 0))
  }

  private static let units: [String: Int128] = [
    "w": 604_800_000_000_000, "d": 86_400_000_000_000, "h": 3_600_000_000_000,
    "m": 60_000_000_000, "s": 1_000_000_000, "ms": 1_000_000, "ns": 1,
  ]

  private static func duration(
    _ name: String,
    _ arguments: [RuleValue]
  ) throws(OperationError) -> RuleValue? {
    switch name {
    case "abs":
      guard case .duration(let span) = arguments[0] else { return nil }
      return .duration(RuleDuration(totalNanos: abs(span.totalNanos)))
    case "value":
      guard case .int(let count) = arguments[0], case .string(let unit) = arguments[1] else {
        return nil
      }
      guard let nanos = units[unit] else {
        throw OperationError(message: "'\(unit)' is not a unit of time.")
      }
      return .duration(try RuleDuration(checked: Int128(count) * nanos))
    default:
      guard let numbers = integers(arguments) else { return nil }
      let seconds = Int128(numbers[0]) * 3600 + Int128(numbers[1]) * 60 + Int128(numbers[2])
      return .duration(try RuleDuration(checked: seconds * 1_000_000_000 + Int128(numbers[3])))
    }
  }

  private static func integers(_ arguments: [RuleValue]) -> [Int64]? {
    var numbers: [Int64] = []
    for case .int(let number) in arguments { numbers.append(number) }
    return numbers.count == arguments.count ? numbers : nil
  }

  private static func latlng(_ arguments: [RuleValue]) throws(OperationError) -> RuleValue? {
    guard let latitude = arguments[0].double, let longitude = arguments[1].double else {
      return nil
    }
    guard (-90...90).contains(latitude), (-180...180).contains(longitude) else {
      throw OperationError(message: "There is no such place on the globe.")
    }
    return .latlng(GeoPoint(latitude: latitude, longitude: longitude))
  }

  // MARK: Hashes

  private static func hash(_ name: String, _ value: RuleValue) -> RuleValue? {
    let bytes: [UInt8]
    switch value {
    case .string(let text): bytes = Array(text.utf8)
    case .bytes(let value): bytes = value
    default: return nil
    }
    switch name {
    case "md5": return .bytes(MD5.hash(data: bytes))
    case "sha256": return .bytes(SHA256.hash(data: bytes))
    // The bytes of the checksums are in little-endian order, as in production.
    case "crc32": return .bytes(sum(bytes, 0xEDB8_8320))
    case "crc32c": return .bytes(sum(bytes, 0x82F6_3B78))
    default: return nil
    }
  }

  private static func sum(_ bytes: [UInt8], _ polynomial: UInt32) -> [UInt8] {
    var sum = UInt32.max
    for byte in bytes {
      sum ^= UInt32(byte)
      for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ polynomial : sum >> 1 }
    }
    return withUnsafeBytes(of: (~sum).littleEndian, Array.init)
  }
}

extension RuleValue {
  fileprivate var double: Double? {
    switch self {
    case .int(let number): Double(number)
    case .float(let number): number
    default: nil
    }
  }
}
