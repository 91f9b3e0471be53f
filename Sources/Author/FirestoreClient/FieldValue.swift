import DocumentModel

/// The new content of a field: a value, or a transform that the server computes.
///
/// Literals are values, and a dictionary can mix field values with any other `Encodable` values:
///
/// ```swift
/// try await reference.set(["text": text, "likes": 0, "sentAt": FieldValue.serverTimestamp])
/// ```
///
/// Use `.value(_:)` to create a field value from any encodable value.
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

  /// Returns a field value for an encodable value.
  ///
  /// An encoding error is thrown when the write is made.
  public static func value(_ value: some Encodable) -> FieldValue {
    do {
      return FieldValue(kind: .value(try ValueEncoder().encode(value)))
    } catch {
      return FieldValue(kind: .failure(error))
    }
  }

  /// A transform that sets the field to the time at which the server handles the request.
  ///
  /// The time has a precision of milliseconds.
  public static let serverTimestamp = FieldValue(kind: .transform(.requestTime))

  /// Returns a transform that adds to the field's number, or to zero if it has none.
  ///
  /// A sum of integers that overflows becomes the minimum or maximum integer.
  public static func increment(_ by: Int) -> FieldValue {
    FieldValue(kind: .transform(.increment(.integer(Int64(by)))))
  }

  /// Returns a transform that adds to the field's number, or to zero if it has none.
  public static func increment(_ by: Double) -> FieldValue {
    FieldValue(kind: .transform(.increment(.double(by))))
  }

  /// Returns a transform that appends the elements that the array does not contain yet.
  ///
  /// Each element is appended only once.
  public static func arrayUnion<each Element: Encodable>(
    _ elements: repeat each Element
  ) -> FieldValue {
    do {
      return FieldValue(kind: .transform(.appendMissingElements(try encode(repeat each elements))))
    } catch {
      return FieldValue(kind: .failure(error))
    }
  }

  /// Returns a transform that removes all array elements that are equal to one of these.
  public static func arrayRemove<each Element: Encodable>(
    _ elements: repeat each Element
  ) -> FieldValue {
    do {
      return FieldValue(kind: .transform(.removeAllFromArray(try encode(repeat each elements))))
    } catch {
      return FieldValue(kind: .failure(error))
    }
  }

  /// A marker that removes the field.
  ///
  /// It is allowed only where fields are merged or updated.
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
  /// Returns the fields of a dictionary whose values are field values or other encodable values.
  static func fields(_ values: [String: any Encodable]) -> [String: FieldValue] {
    values.mapValues { FieldValue(any: $0) }
  }

  /// Returns the fields of a dictionary whose type can hold field values; nil for other types.
  static func fields(holdingFieldValues data: some Encodable) -> [String: FieldValue]? {
    guard holdsFieldValues(type(of: data)) else { return nil }
    return (data as? [String: any Encodable]).map(fields)
  }

  /// Creates a field value from any value.
  ///
  /// Transforms inside dictionaries and arrays are kept.
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

/// A collection that may hold field values.
///
/// This is determined by its type, so that long arrays of numbers need not be searched.
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
  /// Encodes a value; throws `EncodingError` for a transform that only the server can compute.
  ///
  /// Firestore accepts transforms in dictionaries of fields, but not inside encodable types.
  public func encode(to encoder: any Encoder) throws {
    // The container knows Firestore's own types, while a value that encodes itself writes JSON.
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
  /// Creates a string value.
  public init(stringLiteral value: String) { kind = .value(.string(value)) }
  /// Creates an integer value.
  public init(integerLiteral value: Int64) { kind = .value(.integer(value)) }
  /// Creates a double value.
  public init(floatLiteral value: Double) { kind = .value(.double(value)) }
  /// Creates a boolean value.
  public init(booleanLiteral value: Bool) { kind = .value(.boolean(value)) }
  /// Creates a null value.
  ///
  /// Use `delete` to remove a field.
  public init(nilLiteral: ()) { kind = .value(.null) }
  /// Creates an array.
  ///
  /// Its elements must not be transforms, which arrays cannot contain.
  public init(arrayLiteral elements: FieldValue...) { kind = .array(elements) }
  /// Creates a map, whose fields may be transforms.
  public init(dictionaryLiteral elements: (String, FieldValue)...) {
    // The last of equal keys counts, as in successive assignments.
    kind = .map(Dictionary(elements) { _, last in last })
  }
}
