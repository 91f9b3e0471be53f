#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A type of ids in the path of a document, as a `DocumentPath` holds them.
///
/// `String`, `Int` and `UUID` are such types. A type with a `String` as its raw value, or one that
/// is `LosslessStringConvertible`, becomes one by declaring the conformance:
///
/// ```swift
/// struct ChatID: RawRepresentable, PathParameter { var rawValue: String }
/// ```
public protocol PathParameter: Sendable {
  /// Returns the value of an id; nil if the id is not of this type.
  ///
  /// It is no initializer, because `Int.init` would then be ambiguous wherever `PathParameter` is
  /// known.
  static func read(pathSegment: String) -> Self?

  /// The id as it is written in a path.
  ///
  /// An id that does not read as a value with the same `pathSegment` is refused.
  var pathSegment: String { get }
}

extension PathParameter where Self: LosslessStringConvertible {
  /// Returns the value with a description.
  public static func read(pathSegment: String) -> Self? { Self(pathSegment) }

  /// The value's description.
  public var pathSegment: String { description }
}

extension PathParameter where Self: RawRepresentable, RawValue == String {
  /// Returns the value with a raw value.
  public static func read(pathSegment: String) -> Self? { Self(rawValue: pathSegment) }

  /// The raw value.
  public var pathSegment: String { rawValue }
}

extension String: PathParameter {}
extension Int: PathParameter {}

extension UUID: PathParameter {
  /// Returns the UUID with this text, in capital letters.
  public static func read(pathSegment: String) -> UUID? { UUID(uuidString: pathSegment) }

  /// The text in capital letters, as `uuidString` writes it.
  public var pathSegment: String { uuidString }
}
