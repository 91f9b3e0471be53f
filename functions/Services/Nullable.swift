/// An optional value that is encoded as null if missing, so that its key is always present.
@propertyWrapper
public struct Nullable<Value: Codable & Hashable & Sendable>: Codable, Hashable, Sendable {
  /// The value; nil if it is missing.
  public var wrappedValue: Value?

  /// Wraps an optional value.
  public init(wrappedValue: Value?) {
    self.wrappedValue = wrappedValue
  }

  /// Decodes the value or null; throws the decoder's error.
  public init(from decoder: any Decoder) throws {
    wrappedValue = try decoder.singleValueContainer().decode(Value?.self)
  }

  /// Encodes the value or null; throws the encoder's error.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(wrappedValue)
  }
}
