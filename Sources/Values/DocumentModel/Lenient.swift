/// A value, or the reason why it could not be decoded.
///
/// Decoding a `Lenient` never fails. Use it where one malformed document or element must not stop
/// the rest: as the payload of a trigger, as `snapshot.data(as: Lenient<Message>.self)`, or inside
/// another type, as in `[Lenient<Item>]`. A field that may be missing is a `Lenient<Item>?`.
public enum Lenient<Value> {
  /// The decoded value.
  case readable(Value)
  /// The reason, with the path of the field at fault.
  case unreadable(ValueCodingError)

  /// The value; nil when it could not be decoded.
  public var value: Value? {
    if case .readable(let value) = self { value } else { nil }
  }

  /// The reason why there is no value; nil when there is one.
  public var error: ValueCodingError? {
    if case .unreadable(let error) = self { error } else { nil }
  }

  /// The value; throws the reason when there is none.
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
  /// Decodes the value, or keeps why it cannot be decoded.
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
