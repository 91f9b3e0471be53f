/// Why a Swift value could not be made from fields, or fields from a Swift value.
public struct ValueCodingError: Error, Sendable, Hashable {
  /// The place of the error, such as `members[2].name`; empty for the whole value.
  public var path: String
  /// What is wrong there, without the value itself: documents do not belong in logs.
  public var reason: String

  /// An error at a path.
  public init(path: String, reason: String) {
    self.path = path
    self.reason = reason
  }

  /// The error that Swift's own `Codable` machinery threw, in Hearth's form.
  public init(_ error: DecodingError) {
    switch error {
    case .keyNotFound(let key, let context):
      self.init(at: context.codingPath + [key], "is missing")
    case .typeMismatch(_, let context), .valueNotFound(_, let context),
      .dataCorrupted(let context):
      self.init(at: context.codingPath, context.debugDescription)
    @unknown default:
      self.init(path: "", reason: "cannot be decoded")
    }
  }

  /// The error that an `encode(to:)` threw, in Hearth's form.
  public init(_ error: EncodingError) {
    switch error {
    case .invalidValue(_, let context):
      self.init(at: context.codingPath, context.debugDescription)
    @unknown default:
      self.init(path: "", reason: "cannot be encoded")
    }
  }

  init(at codingPath: [any CodingKey], _ reason: String) {
    var path = ""
    for key in codingPath {
      if let index = key.intValue {
        path += "[\(index)]"
      } else {
        path += (path.isEmpty ? "" : ".") + key.stringValue
      }
    }
    self.init(path: path, reason: reason)
  }

  /// The same error with `name` in front of its path.
  public func below(_ name: String) -> ValueCodingError {
    let separator = path.isEmpty || path.hasPrefix("[") ? "" : "."
    return ValueCodingError(path: name + separator + path, reason: reason)
  }
}

extension ValueCodingError: CustomStringConvertible {
  /// The path in quotes and the reason.
  public var description: String { path.isEmpty ? reason : "'\(path)' \(reason)" }
}

/// The options that `ValueDecoder` and `ValueEncoder` share.
struct ValueCodingOptions: Sendable {
  var dialect = ValueDialect.firestore
}

/// Which forms of a value stand for dates, bytes and large numbers.
package enum ValueDialect: Sendable, Hashable {
  /// Firestore's own types.
  case firestore
  /// The types of JSON, for callables.
  ///
  /// Bytes are base64, dates text or numbers, and integers above `Int64.max` a map with `@type`.
  case json(dates: JSONDates)
}

/// How dates are written in JSON.
public enum JSONDates: Sendable, Hashable {
  /// A number of seconds since 2001-01-01, the default of the Firebase client for Swift.
  case secondsSince2001
  /// A number of milliseconds since 1970-01-01, as JavaScript's `Date.now()`.
  case millisecondsSince1970
  /// RFC 3339 text such as `2026-07-01T12:00:00.250Z`, as JavaScript's `toISOString()`.
  case rfc3339
}

/// A key made at run time: an index, or a string.
struct ValueCodingKey: CodingKey {
  var stringValue: String
  var intValue: Int?

  init(stringValue: String) {
    self.stringValue = stringValue
  }

  init(intValue: Int) {
    self.stringValue = String(intValue)
    self.intValue = intValue
  }

  init(index: Int) {
    self.init(intValue: index)
  }

  static let `super` = ValueCodingKey(stringValue: "super")
}
