import DocumentModel

/// What a write puts into a field: a value, or something that the server computes.
///
/// Literals are values, and a dictionary may mix them with any other `Encodable` value:
///
/// ```swift
/// try await reference.set(["text": text, "likes": 0, "sentAt": FieldValue.serverTimestamp])
/// ```
///
/// `.value(_:)` makes a field's value from anything that can be encoded.
public struct FieldValue: Sendable {
  enum Kind: Sendable {
    case value(FirestoreValue)
    case map([String: FieldValue])
    case array([FieldValue])
    case transform(FieldTransform.Kind)
    case delete
    case failure(any Error)
  }

  let kind: Kind

  /// A value; one that cannot be encoded throws when the write is made.
  public static func value(_ value: some Encodable) -> FieldValue {
    do {
      return FieldValue(kind: .value(try ValueEncoder().encode(value)))
    } catch {
      return FieldValue(kind: .failure(error))
    }
  }

  /// The time at which the server handles the request, in milliseconds.
  public static let serverTimestamp = FieldValue(kind: .transform(.requestTime))

  /// Adds to the present number, or to zero if there is none.
  ///
  /// Sums of integers stop at the ends of their range.
  public static func increment(_ by: Int) -> FieldValue {
    FieldValue(kind: .transform(.increment(.integer(Int64(by)))))
  }

  /// Adds to the present number, or to zero if there is none.
  public static func increment(_ by: Double) -> FieldValue {
    FieldValue(kind: .transform(.increment(.double(by))))
  }

  /// Appends the elements that the array does not have yet, each only once.
  public static func arrayUnion<each Element: Encodable>(
    _ elements: repeat each Element
  ) -> FieldValue {
    do {
      return FieldValue(kind: .transform(.appendMissingElements(try encode(repeat each elements))))
    } catch {
      return FieldValue(kind: .failure(error))
    }
  }

  /// Removes all elements equal to one of these.
  public static func arrayRemove<each Element: Encodable>(
    _ elements: repeat each Element
  ) -> FieldValue {
    do {
      return FieldValue(kind: .transform(.removeAllFromArray(try encode(repeat each elements))))
    } catch {
      return FieldValue(kind: .failure(error))
    }
  }

  /// Removes the field; allowed only where fields are merged or updated.
  public static let delete = FieldValue(kind: .delete)

  private static func encode<each Element: Encodable>(
    _ elements: repeat each Element
  ) throws -> [FirestoreValue] {
    var values: [FirestoreValue] = []
    for element in repeat each elements { values.append(try ValueEncoder().encode(element)) }
    return values
  }
}

extension FieldValue {
  /// The fields of a dictionary whose values are field values or anything that can be encoded.
  static func fields(_ values: [String: any Encodable]) -> [String: FieldValue] {
    values.mapValues { FieldValue(any: $0) }
  }

  /// The fields of a dictionary that holds field values at any depth; nil for anything else.
  static func fields(holdingFieldValues data: some Encodable) -> [String: FieldValue]? {
    guard holdsFieldValues(type(of: data)) else { return nil }
    return (data as? [String: any Encodable]).map(fields)
  }

  /// A value of any type; dictionaries and arrays keep what the server computes inside them.
  private init(any value: any Encodable) {
    if let field = value as? FieldValue {
      self = field
    } else if holdsFieldValues(type(of: value)), let map = value as? [String: any Encodable] {
      self.init(kind: .map(Self.fields(map)))
    } else if holdsFieldValues(type(of: value)), let array = value as? [any Encodable] {
      self.init(kind: .array(array.map { FieldValue(any: $0) }))
    } else {
      self = .value(value)
    }
  }
}

/// A collection that may hold field values, told by its type, so that long arrays of numbers are not
/// looked through.
private protocol FieldValueHolder {
  static var holdsFieldValues: Bool { get }
}

private func holdsFieldValues(_ type: any Any.Type) -> Bool {
  type == FieldValue.self || type == (any Encodable).self
    || (type as? any FieldValueHolder.Type)?.holdsFieldValues ?? false
}

extension Array: FieldValueHolder {
  fileprivate static var holdsFieldValues: Bool { FirestoreClient.holdsFieldValues(Element.self) }
}

extension Dictionary: FieldValueHolder {
  fileprivate static var holdsFieldValues: Bool { FirestoreClient.holdsFieldValues(Value.self) }
}

extension FieldValue: Encodable {
  /// Writes a value; throws `EncodingError` for one that only the server can compute.
  ///
  /// Firestore accepts computed fields in dictionaries of fields, not inside encodable types.
  public func encode(to encoder: any Encoder) throws {
    // By the container, which knows Firestore's own types; a value by itself writes JSON.
    var container = encoder.singleValueContainer()
    switch kind {
    case .value(let value): try container.encode(value)
    case .map(let fields): try container.encode(fields)
    case .array(let elements): try container.encode(elements)
    case .failure(let error): throw error
    case .transform, .delete:
      throw EncodingError.invalidValue(
        self,
        EncodingError.Context(
          codingPath: encoder.codingPath,
          debugDescription: "a field that the server computes stands only in a dictionary of fields"
        )
      )
    }
  }
}

extension FieldValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral, ExpressibleByNilLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// A string.
  public init(stringLiteral value: String) { kind = .value(.string(value)) }
  /// An integer.
  public init(integerLiteral value: Int64) { kind = .value(.integer(value)) }
  /// A double.
  public init(floatLiteral value: Double) { kind = .value(.double(value)) }
  /// A boolean.
  public init(booleanLiteral value: Bool) { kind = .value(.boolean(value)) }
  /// Null, which is a value; `delete` removes a field.
  public init(nilLiteral: ()) { kind = .value(.null) }
  /// An array of values; the server computes nothing inside arrays.
  public init(arrayLiteral elements: FieldValue...) { kind = .array(elements) }
  /// A map, whose fields may be computed.
  public init(dictionaryLiteral elements: (String, FieldValue)...) {
    // Of equal keys the last one counts, as in successive assignments.
    kind = .map(Dictionary(elements) { _, last in last })
  }
}
