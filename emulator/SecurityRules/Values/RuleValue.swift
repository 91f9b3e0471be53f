package import DocumentModel

/// A value of the rules language.
///
/// Maps of documents are converted member by member when they are accessed.
package enum RuleValue: Sendable {
  case null
  case bool(Bool)
  case int(Int64)
  case float(Double)
  case string(String)
  case bytes([UInt8])
  case timestamp(RuleTimestamp)
  // Large cases are boxed, so that the other cases need no box.
  indirect case duration(RuleDuration)
  case latlng(GeoPoint)
  /// A vector of numbers, which rules can only test for equality.
  case vector([Double])
  case path(RulePath)
  case list([RuleValue])
  case map(RuleMap)
  indirect case set(RuleSet)
  indirect case mapDiff(RuleMapDiff)
  /// A field of a query's results, with unknown value; see `QueryConstraints`.
  case queried(QueriedPart)

  var isNull: Bool { if case .null = self { true } else { false } }

  /// The name of the value's type for `is` and for error messages.
  var typeName: String {
    switch self {
    case .null: "null"
    case .bool: "bool"
    case .int: "int"
    case .float: "float"
    case .string: "string"
    case .bytes: "bytes"
    case .timestamp: "timestamp"
    case .duration: "duration"
    case .latlng: "latlng"
    case .vector: "vector"
    case .path: "path"
    case .list: "list"
    case .map: "map"
    case .set: "set"
    case .mapDiff: "map_diff"
    case .queried: "constraint"
    }
  }
}

/// A part of the documents that a query would find, which are not known yet.
package struct QueriedPart: Sendable, Hashable {
  /// The names after `resource`; empty for the resource itself.
  var names: [String]
}

/// A point in time with nanoseconds.
package struct RuleTimestamp: Sendable, Hashable, Comparable {
  package var seconds: Int64
  /// The nanoseconds within the second: 0 to 999,999,999.
  package var nanos: Int32

  init(seconds: Int64, nanos: Int32) {
    self.seconds = seconds
    self.nanos = nanos
  }

  /// Creates a timestamp from a document's timestamp.
  package init(_ timestamp: Timestamp) {
    self.init(seconds: timestamp.seconds, nanos: timestamp.nanoseconds)
  }

  package static func < (left: RuleTimestamp, right: RuleTimestamp) -> Bool {
    left.seconds == right.seconds ? left.nanos < right.nanos : left.seconds < right.seconds
  }
}

extension RuleTimestamp: CustomStringConvertible {
  /// The time in RFC 3339, to the microsecond.
  package var description: String {
    Timestamp(microseconds: Int64(totalNanos / 1000)).description
  }
}

/// A span of time in nanoseconds, which may be negative.
package struct RuleDuration: Sendable, Hashable, Comparable {
  /// The whole span; the longest span of 315,576,000,000 seconds fits many times over.
  var totalNanos: Int128

  package static func < (left: RuleDuration, right: RuleDuration) -> Bool {
    left.totalNanos < right.totalNanos
  }

  /// The longest span, as in protobuf: ten thousand years.
  static let secondsMax: Int128 = 315_576_000_000
}

/// The segments of a path, some of which may be placeholders for `bind`.
package struct RulePath: Sendable, Hashable {
  package var segments: [String]

  /// True if segments such as `{id}` of a `path()` are still to be filled by `bind`.
  var hasPlaceholders = false
  static let unbound = OperationError(message: "A variable is not bound in path template.")

  /// Creates a path from segments, which are used as they are.
  package init(_ segments: [String]) { self.segments = segments }

  /// The path as text, with a slash before each segment.
  package var text: String { segments.map { "/" + $0 }.joined() }

  /// Indicates whether the segments have the same bytes, even if other strings look alike.
  package static func == (left: RulePath, right: RulePath) -> Bool {
    guard left.segments.count == right.segments.count else { return false }
    // Comparing from the end is faster, because all paths of one database begin alike.
    for place in left.segments.indices.reversed() {
      guard left.segments[place].isIdentical(to: right.segments[place]) else { return false }
    }
    return true
  }

  package func hash(into hasher: inout Hasher) {
    for segment in segments { hasher.combine(ExactText(segment)) }
  }
}

/// The differences between two maps, by top-level key.
package struct RuleMapDiff: Sendable {
  var added: [String] = []
  var removed: [String] = []
  var changed: [String] = []
  var unchanged: [String] = []

  init(_ new: RuleMap, from old: RuleMap) {
    for key in new.keys {
      guard let value = new[key] else { continue }
      if let before = old[key] {
        if value.equals(before) || Self.isExactlyEqual(new, old, key) {
          unchanged.append(key)
        } else {
          changed.append(key)
        }
      } else {
        added.append(key)
      }
    }
    removed = old.keys.filter { new[$0] == nil }
  }

  /// Indicates whether a key has the same stored value in both maps; NaN counts as unchanged.
  private static func isExactlyEqual(_ new: RuleMap, _ old: RuleMap, _ key: String) -> Bool {
    guard case .fields(let new) = new, case .fields(let old) = old else { return false }
    return new[key] == old[key]
  }
}

extension RuleValue {
  /// Creates a rule value from a stored value.
  package init(_ value: FirestoreValue) {
    switch value {
    case .null: self = .null
    case .boolean(let value): self = .bool(value)
    case .integer(let value): self = .int(value)
    case .double(let value): self = .float(value)
    case .timestamp(let value): self = .timestamp(RuleTimestamp(value))
    case .string(let value): self = .string(value)
    case .bytes(let value): self = .bytes(value)
    case .reference(let name): self = .path(RulePath(name))
    case .geoPoint(let value): self = .latlng(value)
    case .array(let values): self = .list(values.map(RuleValue.init))
    case .vector(let numbers): self = .vector(numbers)
    case .map(let fields): self = .map(.fields(fields))
    }
  }

  /// Compares two values as `==` does.
  ///
  /// An `int` equals a `float` with the same value, but not within lists and maps.
  func equals(_ other: RuleValue) -> Bool {
    switch (self, other) {
    case (.int(let a), .float(let b)), (.float(let b), .int(let a)): Double(a) == b
    default: isSame(as: other)
    }
  }

  /// Compares two elements like `equals`, but numbers must have the same type.
  func isSame(as other: RuleValue) -> Bool {
    switch (self, other) {
    case (.null, .null): true
    case (.bool(let a), .bool(let b)): a == b
    case (.int(let a), .int(let b)): a == b
    case (.float(let a), .float(let b)): a == b
    case (.vector(let a), .vector(let b)): a == b
    case (.string(let a), .string(let b)): a.isIdentical(to: b)
    case (.bytes(let a), .bytes(let b)): a == b
    case (.timestamp(let a), .timestamp(let b)): a == b
    case (.duration(let a), .duration(let b)): a == b
    case (.latlng(let a), .latlng(let b)): a == b
    case (.path(let a), .path(let b)): a == b
    case (.list(let a), .list(let b)):
      a.count == b.count && zip(a, b).allSatisfy { $0.isSame(as: $1) }
    case (.map(let a), .map(let b)):
      a.count == b.count
        && a.keys.allSatisfy { key in
          guard let left = a[key], let right = b[key] else { return false }
          return left.isSame(as: right)
        }
    case (.set(let a), .set(let b)):
      a.count == b.count && a.elements.allSatisfy(b.contains)
    default: false
    }
  }
}

extension RulePath {
  /// Creates a document's path as rules write it, without the project.
  package init(_ name: DocumentName) {
    self.init(["databases", name.database.database, "documents"] + name.path.segments)
  }
}
