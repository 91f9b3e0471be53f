/// An error in converting between a Swift value and Firestore fields.
public struct ValueCodingError: Error, Sendable, Hashable {
  /// The path of the value that could not be converted, such as `members[2].name`.
  ///
  /// Empty for the whole value.
  public var path: String
  /// The reason, without the value itself: document contents do not belong in logs.
  public var reason: String
  /// The path of the document at fault, such as `chats/c1`; nil for a value of no document.
  public var document: String?

  /// Creates an error at a path.
  public init(path: String, reason: String, document: String? = nil) {
    self.path = path
    self.reason = reason
    self.document = document
  }

  /// Converts an error thrown by Swift's own `Codable` implementation.
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

  /// Converts an error thrown by a type's `encode(to:)`.
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

  /// Returns a copy of the error with `name` prepended to its path.
  public func below(_ name: String) -> ValueCodingError {
    let separator = path.isEmpty || path.hasPrefix("[") ? "" : "."
    return ValueCodingError(path: name + separator + path, reason: reason, document: document)
  }
}

extension ValueCodingError: CustomStringConvertible {
  /// The document if it is known, the path in single quotes, then the reason.
  public var description: String {
    (document.map { "\($0): " } ?? "") + (path.isEmpty ? reason : "'\(path)' \(reason)")
  }
}

/// The options that `ValueDecoder` and `ValueEncoder` share.
struct ValueCodingOptions: Sendable {
  var dialect = ValueDialect.firestore
}

/// The representation of dates, bytes and large numbers in encoded values.
package enum ValueDialect: Sendable, Hashable {
  /// Firestore's own types.
  case firestore
  /// The types of JSON, for callables.
  ///
  /// Bytes are base64, dates are text or numbers, and an integer above `Int64.max` is a map with
  /// `@type`.
  case json(dates: JSONDates)
  /// The types of the Realtime Database.
  ///
  /// Times are numbers of milliseconds since 1970, and every number is a double. A list is read
  /// from a map whose keys are indices, more than half of them present, and a map from a list.
  case database
}

/// The representation of dates in JSON.
public enum JSONDates: Sendable, Hashable {
  /// A number of seconds since 2001-01-01, the default of the Firebase client for Swift.
  case secondsSince2001
  /// A number of milliseconds since 1970-01-01, as JavaScript's `Date.now()`.
  case millisecondsSince1970
  /// RFC 3339 text such as `2026-07-01T12:00:00.250Z`, as JavaScript's `toISOString()`.
  case rfc3339
}

/// A key created at run time: an index or a string.
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
