#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A type that is encoded as one value rather than as a container of values.
protocol ValueRepresentable {
  /// Reads the value; nil if its type does not match or the value does not fit.
  static func read(_ value: FirestoreValue, _ dialect: ValueDialect) -> Self?

  /// Returns the encoded value; nil if the dialect cannot express it.
  func written(_ dialect: ValueDialect) -> FirestoreValue?

  /// The expected kind of value with its article, for error messages.
  static var expectation: String { get }

  /// The form of the value in JSON, with an example; nil if the kind says it all.
  static func form(_ dates: JSONDates) -> String?
}

extension ValueRepresentable {
  static func form(_ dates: JSONDates) -> String? { nil }

  /// Returns the expected kind of value, in JSON with its form.
  static func expectation(_ dialect: ValueDialect) -> String {
    guard case .json(let dates) = dialect, let form = form(dates) else { return expectation }
    return "\(expectation), in JSON \(form)"
  }
}

extension FirestoreValue {
  /// The type of the value with its article, for error messages.
  var kindDescription: String {
    switch self {
    case .null: "null"
    case .boolean: "a boolean"
    case .integer: "an integer"
    case .double: "a double"
    case .timestamp: "a timestamp"
    case .string: "a string"
    case .bytes: "bytes"
    case .reference: "a reference"
    case .geoPoint: "a geo point"
    case .array: "an array"
    case .vector: "a vector"
    case .map: "a map"
    }
  }
}

extension Bool: ValueRepresentable {
  static func read(_ value: FirestoreValue, _ dialect: ValueDialect) -> Bool? {
    if case .boolean(let result) = value { result } else { nil }
  }

  func written(_ dialect: ValueDialect) -> FirestoreValue? { .boolean(self) }
  static var expectation: String { "a boolean" }
}

extension String: ValueRepresentable {
  static func read(_ value: FirestoreValue, _ dialect: ValueDialect) -> String? {
    if case .string(let result) = value { result } else { nil }
  }

  func written(_ dialect: ValueDialect) -> FirestoreValue? { .string(self) }
  static var expectation: String { "a string" }
}

/// The map that wraps an integer too large for JavaScript, as in Google's JSON.
package enum WrappedInteger {
  package static let signed = "type.googleapis.com/google.protobuf.Int64Value"
  package static let unsigned = "type.googleapis.com/google.protobuf.UInt64Value"

  /// Returns the map that wraps an integer with the given type and decimal digits.
  package static func map(_ type: String, _ digits: String) -> FirestoreValue {
    .map(["@type": .string(type), "value": .string(digits)])
  }

  /// Returns the digits of a wrapped unsigned integer; nil for any other map.
  package static func digits(of fields: MapValue) -> String? {
    guard fields.count == 2, fields["@type"] == .string(unsigned),
      case .string(let digits)? = fields["value"]
    else { return nil }
    return digits
  }
}

extension FixedWidthInteger {
  static func read(_ value: FirestoreValue, _ dialect: ValueDialect) -> Self? {
    switch value {
    case .integer(let integer): Self(exactly: integer)
    // JavaScript has only one number type, so whole doubles count as integers too.
    case .double(let double): Self(exactly: double)
    case .map(let fields) where dialect != .firestore:
      if case .string(WrappedInteger.unsigned) = fields["@type"],
        case .string(let digits) = fields["value"]
      {
        Self(digits)
      } else {
        nil
      }
    default: nil
    }
  }

  func written(_ dialect: ValueDialect) -> FirestoreValue? {
    if let integer = Int64(exactly: self) { return .integer(integer) }
    return switch dialect {
    case .firestore: nil
    case .json: WrappedInteger.map(WrappedInteger.unsigned, String(self))
    case .database: .double(Double(self))
    }
  }

  static var expectation: String { "an integer from \(Self.min) to \(Self.max)" }
}

extension Int: ValueRepresentable {}
extension Int8: ValueRepresentable {}
extension Int16: ValueRepresentable {}
extension Int32: ValueRepresentable {}
extension Int64: ValueRepresentable {}
extension UInt: ValueRepresentable {}
extension UInt8: ValueRepresentable {}
extension UInt16: ValueRepresentable {}
extension UInt32: ValueRepresentable {}
extension UInt64: ValueRepresentable {}

extension Double: ValueRepresentable {
  static func read(_ value: FirestoreValue, _ dialect: ValueDialect) -> Double? {
    switch value {
    case .double(let double): double
    case .integer(let integer): Double(integer)
    default: UInt64.read(value, dialect).map(Double.init)
    }
  }

  func written(_ dialect: ValueDialect) -> FirestoreValue? { .double(self) }
  static var expectation: String { "a number" }
}

extension Float: ValueRepresentable {
  static func read(_ value: FirestoreValue, _ dialect: ValueDialect) -> Float? {
    Double.read(value, dialect).map(Float.init)
  }

  func written(_ dialect: ValueDialect) -> FirestoreValue? { .double(Double(self)) }
  static var expectation: String { "a number" }
}

/// A number, as the Firebase clients for Apple's platforms write it, in the precision of a double.
extension Decimal: ValueRepresentable {
  static func read(_ value: FirestoreValue, _ dialect: ValueDialect) -> Decimal? {
    if let integer = Int64.read(value, dialect) { return Decimal(integer) }
    if let integer = UInt64.read(value, dialect) { return Decimal(integer) }
    // The shortest digits of the double are those that were written, such as 19.99. Its exact value
    // has more of them.
    return Double.read(value, dialect).flatMap { Decimal(string: $0.description) }
  }

  func written(_ dialect: ValueDialect) -> FirestoreValue? {
    Double(description).map { .double($0) }
  }

  static var expectation: String { "a number that a Decimal can hold" }
}

extension FirestoreValue: ValueRepresentable {
  static func read(_ value: FirestoreValue, _ dialect: ValueDialect) -> FirestoreValue? { value }
  func written(_ dialect: ValueDialect) -> FirestoreValue? { self }
  static var expectation: String { "a value" }
}

extension Timestamp: ValueRepresentable {
  static func read(_ value: FirestoreValue, _ dialect: ValueDialect) -> Timestamp? {
    switch value {
    case .timestamp(let timestamp): timestamp
    case .string(let text) where dialect != .firestore: Timestamp(text)
    case .double(let milliseconds) where dialect == .database:
      Int64(exactly: (milliseconds * 1000).rounded()).map { Timestamp(microseconds: $0) }
    default: nil
    }
  }

  func written(_ dialect: ValueDialect) -> FirestoreValue? {
    switch dialect {
    case .firestore: .timestamp(self)
    case .json: .string(description)
    case .database: .double((Double(microseconds) / 1000).rounded(.down))
    }
  }

  static var expectation: String { "a timestamp" }
  static func form(_ dates: JSONDates) -> String? { #"text such as "2026-07-01T12:00:00Z""# }
}

extension GeoPoint: ValueRepresentable {
  static func read(_ value: FirestoreValue, _ dialect: ValueDialect) -> GeoPoint? {
    switch value {
    case .geoPoint(let point): return point
    case .map(let fields) where dialect != .firestore:
      guard let latitude = fields["latitude"].flatMap({ Double.read($0, dialect) }),
        let longitude = fields["longitude"].flatMap({ Double.read($0, dialect) })
      else { return nil }
      return GeoPoint(latitude: latitude, longitude: longitude)
    default: return nil
    }
  }

  func written(_ dialect: ValueDialect) -> FirestoreValue? {
    dialect == .firestore
      ? .geoPoint(self)
      : .map(["latitude": .double(latitude), "longitude": .double(longitude)])
  }

  static var expectation: String { "a geo point" }
  static func form(_ dates: JSONDates) -> String? { #"{"latitude": 52.5, "longitude": 13.4}"# }
}

extension DocumentName: ValueRepresentable {
  static func read(_ value: FirestoreValue, _ dialect: ValueDialect) -> DocumentName? {
    switch value {
    case .reference(let name): name
    case .string(let text) where dialect != .firestore: DocumentName(text)
    default: nil
    }
  }

  func written(_ dialect: ValueDialect) -> FirestoreValue? {
    dialect == .firestore ? .reference(self) : .string(description)
  }

  static var expectation: String { "a reference" }
  static func form(_ dates: JSONDates) -> String? {
    #"text such as "projects/P/databases/(default)/documents/users/ann""#
  }
}

extension Data: ValueRepresentable {
  static func read(_ value: FirestoreValue, _ dialect: ValueDialect) -> Data? {
    switch value {
    case .bytes(let bytes): Data(bytes)
    case .string(let text) where dialect != .firestore: Data(base64Encoded: text)
    default: nil
    }
  }

  func written(_ dialect: ValueDialect) -> FirestoreValue? {
    dialect == .firestore ? .bytes(Array(self)) : .string(base64EncodedString())
  }

  static var expectation: String { "bytes" }
  static func form(_ dates: JSONDates) -> String? { #"text in base64, such as "aGVsbG8=""# }
}

extension URL: ValueRepresentable {
  static func read(_ value: FirestoreValue, _ dialect: ValueDialect) -> URL? {
    if case .string(let text) = value { URL(string: text) } else { nil }
  }

  func written(_ dialect: ValueDialect) -> FirestoreValue? { .string(absoluteString) }
  static var expectation: String { "the text of a URL" }
}

extension Date: ValueRepresentable {
  static func read(_ value: FirestoreValue, _ dialect: ValueDialect) -> Date? {
    switch (dialect, value) {
    case (_, .timestamp(let timestamp)):
      timestamp.date
    case (.json(.secondsSince2001), _):
      Double.read(value, dialect).map { Date(timeIntervalSinceReferenceDate: $0) }
    case (.json(.millisecondsSince1970), _), (.database, _):
      Double.read(value, dialect).map { Date(timeIntervalSince1970: $0 / 1000) }
    case (.json(.rfc3339), .string(let text)):
      Timestamp(text)?.date
    default: nil
    }
  }

  func written(_ dialect: ValueDialect) -> FirestoreValue? {
    switch dialect {
    case .firestore: Timestamp(self).map(FirestoreValue.timestamp)
    case .json(.secondsSince2001): .double(timeIntervalSinceReferenceDate)
    case .json(.millisecondsSince1970), .database: .double((timeIntervalSince1970 * 1000).rounded())
    case .json(.rfc3339): Timestamp(self).map { .string($0.description) }
    }
  }

  static var expectation: String { "a date" }

  static func form(_ dates: JSONDates) -> String? {
    switch dates {
    case .secondsSince2001: "a number of seconds since 2001-01-01, such as 804600000"
    case .millisecondsSince1970: "a number of milliseconds since 1970-01-01, such as 1782907200000"
    case .rfc3339: #"text such as "2026-07-01T12:00:00Z""#
    }
  }
}
