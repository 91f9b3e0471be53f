/// A decoded value, or the reason why it could not be decoded.
///
/// Decoding a `Lenient` never fails. Use it where one malformed document or element must not stop
/// the rest: as the payload of a trigger, as `snapshot.data(as: Lenient<Message>.self)`, or inside
/// another type, as in `[Lenient<Item>]`. Use `Lenient<Item>?` for a field that may be missing.
public enum Lenient<Value> {
  /// The decoded value.
  case readable(Value)
  /// The reason why decoding failed, with the path of the invalid field.
  case unreadable(ValueCodingError)

  /// The value; nil if it could not be decoded.
  public var value: Value? {
    if case .readable(let value) = self { value } else { nil }
  }

  /// The reason why decoding failed; nil if there is a value.
  public var error: ValueCodingError? {
    if case .unreadable(let error) = self { error } else { nil }
  }

  /// Returns the value, or throws the reason why decoding failed.
  public func get() throws(ValueCodingError) -> Value {
    switch self {
    case .readable(let value): return value
    case .unreadable(let error): throw error
    }
  }
}

extension Lenient: Sendable where Value: Sendable {}
extension Lenient: Equatable where Value: Equatable {}
extension Lenient: Hashable where Value: Hashable {}

extension Lenient: Decodable where Value: Decodable {
  /// Decodes the value, or stores the reason why it cannot be decoded.
  public init(from decoder: any Decoder) throws {
    do {
      self = .readable(try decoder.singleValueContainer().decode(Value.self))
    } catch let error as ValueCodingError {
      self = .unreadable(error)
    } catch let error as DecodingError {
      self = .unreadable(ValueCodingError(error))
    } catch {
      self = .unreadable(ValueCodingError(at: decoder.codingPath, "\(error)"))
    }
  }
}
