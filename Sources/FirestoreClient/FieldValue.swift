import DocumentModel

/// What a write puts into a field: a value, or what the server computes.
///
/// Literals are values; `.value(_:)` takes anything that can be encoded.
public struct FieldValue: Sendable {
  enum Kind: Sendable {
    case value(DocumentModel.Value)
    case map([String: FieldValue])
    case array([FieldValue])
    case transform(FieldTransform.Kind)
    case delete
    case failure(any Error)
  }

  let kind: Kind

  /// A value; what cannot be encoded throws where the write is made.
  public static func value(_ value: some Encodable) -> FieldValue {
    do {
      return FieldValue(kind: .value(try ValueEncoder().encode(value)))
    } catch {
      return FieldValue(kind: .failure(error))
    }
  }

  /// The time at which the server handles the request, in milliseconds.
  public static let serverTimestamp = FieldValue(kind: .transform(.requestTime))

  /// Adds to the number there; to zero where there is none.
  ///
  /// Sums of integers stop at the ends of their range.
  public static func increment(_ by: Int) -> FieldValue {
    FieldValue(kind: .transform(.increment(.integer(Int64(by)))))
  }

  /// Adds to the number there; to zero where there is none.
  public static func increment(_ by: Double) -> FieldValue {
    FieldValue(kind: .transform(.increment(.double(by))))
  }

  /// Appends those elements that the array does not have yet; equal ones only once.
  public static func arrayUnion<each Element: Encodable>(
    _ elements: repeat each Element
  ) -> FieldValue {
    do {
      return FieldValue(kind: .transform(.appendMissingElements(try encode(repeat each elements))))
    } catch {
      return FieldValue(kind: .failure(error))
    }
  }

  /// Removes all elements that equal one of these.
  public static func arrayRemove<each Element: Encodable>(
    _ elements: repeat each Element
  ) -> FieldValue {
    do {
      return FieldValue(kind: .transform(.removeAllFromArray(try encode(repeat each elements))))
    } catch {
      return FieldValue(kind: .failure(error))
    }
  }

  /// Removes the field; only where fields are merged or updated.
  public static let delete = FieldValue(kind: .delete)

  private static func encode<each Element: Encodable>(
    _ elements: repeat each Element
  ) throws -> [DocumentModel.Value] {
    var values: [DocumentModel.Value] = []
    for element in repeat each elements { values.append(try ValueEncoder().encode(element)) }
    return values
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
    // Of equal keys the last counts, as in assignments one after another.
    kind = .map(Dictionary(elements) { _, last in last })
  }
}
