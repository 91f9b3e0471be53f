/// One Firestore value.
///
/// Equality is exact: `3` and `3.0` differ, `-0.0` and `0.0` differ, every NaN equals every NaN.
/// Queries and array transforms compare with `ValueOrder` instead.
public indirect enum Value: Sendable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case double(Double)
  case timestamp(Timestamp)
  case string(String)
  case bytes([UInt8])
  case reference(DocumentName)
  case geoPoint(GeoPoint)
  case array([Value])
  /// On the wire a map with `__type__` = `__vector__` and `value` = array of doubles.
  case vector([Double])
  case map([String: Value])
}

extension Value: Hashable {
  /// Exact equality, see above.
  public static func == (left: Value, right: Value) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.boolean(let a), .boolean(let b)): a == b
    case (.integer(let a), .integer(let b)): a == b
    case (.double(let a), .double(let b)): Self.identity(a) == Self.identity(b)
    case (.timestamp(let a), .timestamp(let b)): a == b
    // Swift's own string equality folds canonically equivalent scalars; Firestore's does not.
    case (.string(let a), .string(let b)): a.utf8.elementsEqual(b.utf8)
    case (.bytes(let a), .bytes(let b)): a == b
    case (.reference(let a), .reference(let b)): a == b
    case (.geoPoint(let a), .geoPoint(let b)): a == b
    case (.array(let a), .array(let b)): a == b
    case (.vector(let a), .vector(let b)): a.map(Self.identity) == b.map(Self.identity)
    case (.map(let a), .map(let b)): a == b
    default: false
    }
  }

  /// Hashes what `==` compares.
  public func hash(into hasher: inout Hasher) {
    switch self {
    case .null: hasher.combine(0)
    case .boolean(let value): hasher.combine(value)
    case .integer(let value): hasher.combine(value)
    case .double(let value): hasher.combine(Self.identity(value))
    case .timestamp(let value): hasher.combine(value)
    case .string(let value): for byte in value.utf8 { hasher.combine(byte) }
    case .bytes(let value): hasher.combine(value)
    case .reference(let value): hasher.combine(value)
    case .geoPoint(let value): hasher.combine(value)
    case .array(let value): hasher.combine(value)
    case .vector(let value): hasher.combine(value.map(Self.identity))
    case .map(let value): hasher.combine(value)
    }
  }

  private static func identity(_ double: Double) -> UInt64 {
    double.isNaN ? Double.nan.bitPattern : double.bitPattern
  }
}

/// A point on the globe; latitude −90 to 90 and longitude −180 to 180, in degrees.
public struct GeoPoint: Sendable, Hashable, Codable {
  /// Degrees north.
  public var latitude: Double
  /// Degrees east.
  public var longitude: Double

  /// A point that is not checked here; a write refuses one out of range.
  public init(latitude: Double, longitude: Double) {
    self.latitude = latitude
    self.longitude = longitude
  }
}
