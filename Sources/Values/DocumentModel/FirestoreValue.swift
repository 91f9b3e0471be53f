/// One Firestore value.
///
/// Equality is exact: `3` and `3.0` differ, `-0.0` and `0.0` differ, and all NaNs are equal. Text
/// is equal if its bytes are equal. Queries and array transforms compare with `ValueOrder` instead.
public indirect enum FirestoreValue: Sendable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case double(Double)
  case timestamp(Timestamp)
  case string(String)
  case bytes([UInt8])
  case reference(DocumentName)
  case geoPoint(GeoPoint)
  case array([FirestoreValue])
  /// A vector.
  ///
  /// On the wire it is a map with `__type__` = `__vector__` and `value` = an array of doubles.
  case vector([Double])
  case map(MapValue)
}

extension FirestoreValue: Hashable {
  /// Compares exactly, as described for the type.
  public static func == (left: FirestoreValue, right: FirestoreValue) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.boolean(let a), .boolean(let b)): a == b
    case (.integer(let a), .integer(let b)): a == b
    case (.double(let a), .double(let b)): Self.identity(a) == Self.identity(b)
    case (.timestamp(let a), .timestamp(let b)): a == b
    case (.string(let a), .string(let b)): a.isIdentical(to: b)
    case (.bytes(let a), .bytes(let b)): a == b
    case (.reference(let a), .reference(let b)): a == b
    case (.geoPoint(let a), .geoPoint(let b)):
      Self.identity(a.latitude) == Self.identity(b.latitude)
        && Self.identity(a.longitude) == Self.identity(b.longitude)
    case (.array(let a), .array(let b)): a == b
    case (.vector(let a), .vector(let b)): a.map(Self.identity) == b.map(Self.identity)
    case (.map(let a), .map(let b)): a == b
    default: false
    }
  }

  /// Hashes what `==` compares, preceded by the type.
  ///
  /// The type is needed because an integer and a double may have the same bits.
  public func hash(into hasher: inout Hasher) {
    switch self {
    case .null: hasher.combine(0)
    case .boolean(let value): Self.hash(1, value, into: &hasher)
    case .integer(let value): Self.hash(2, value, into: &hasher)
    case .double(let value): Self.hash(3, Self.identity(value), into: &hasher)
    case .timestamp(let value): Self.hash(4, value, into: &hasher)
    case .string(let value):
      hasher.combine(5)
      value.hashBytes(into: &hasher)
    case .bytes(let value): Self.hash(6, value, into: &hasher)
    case .reference(let value): Self.hash(7, value, into: &hasher)
    case .geoPoint(let value):
      Self.hash(8, Self.identity(value.latitude), into: &hasher)
      hasher.combine(Self.identity(value.longitude))
    case .array(let value): Self.hash(9, value, into: &hasher)
    case .vector(let value): Self.hash(10, value.map(Self.identity), into: &hasher)
    case .map(let value): Self.hash(11, value, into: &hasher)
    }
  }

  private static func hash(_ type: Int, _ value: some Hashable, into hasher: inout Hasher) {
    hasher.combine(type)
    hasher.combine(value)
  }

  private static func identity(_ double: Double) -> UInt64 { double.withOneNaN.bitPattern }
}

extension Double {
  /// The number itself, or for any NaN the one NaN whose bits are stored and sent.
  package var withOneNaN: Double { isNaN ? .nan : self }
}

/// A point on the globe in degrees: latitude −90 to 90, longitude −180 to 180.
public struct GeoPoint: Sendable, Hashable, Codable {
  /// Degrees north.
  public var latitude: Double
  /// Degrees east.
  public var longitude: Double

  /// Creates a point without a range check; a write refuses a point that is out of range.
  public init(latitude: Double, longitude: Double) {
    self.latitude = latitude
    self.longitude = longitude
  }
}
