/// A path to a field of a document, through nested maps only.
///
/// Its written form has dots between segments. A segment that does not match
/// `[A-Za-z_][A-Za-z0-9_]*` is enclosed in backquotes, with a backslash before each backquote or
/// backslash.
public struct FieldPath: Sendable, Hashable {
  /// Raw map keys, outermost first; never empty.
  public var segments: [String]

  /// Creates a path from raw keys; the caller must pass at least one.
  public init(_ segments: [String]) {
    precondition(!segments.isEmpty, "a field path has at least one segment")
    self.segments = segments
  }

  /// The path of the document's own name in filters, orders and projections: `__name__`.
  public static let documentID = FieldPath(["__name__"])

  /// True if the path is `__name__`.
  public var isDocumentID: Bool { segments == ["__name__"] }

  /// Returns true if this path equals `other` or lies below it.
  public func isBelowOrEqual(to other: FieldPath) -> Bool {
    segments.count >= other.segments.count
      && zip(segments, other.segments).allSatisfy { $0.isIdentical(to: $1) }
  }

  /// Returns true if both paths have the same segments, byte for byte.
  public static func == (left: FieldPath, right: FieldPath) -> Bool {
    left.segments.areIdentical(to: right.segments)
  }

  /// Hashes the bytes that `==` compares.
  public func hash(into hasher: inout Hasher) { segments.hashBytes(into: &hasher) }
}

extension FieldPath: CustomStringConvertible {
  /// The canonical written form of the path.
  public var description: String {
    segments.map { segment in
      if Self.isSimple(segment) { return segment }
      var quoted = "`"
      for character in segment.unicodeScalars {
        if character == "`" || character == "\\" { quoted.unicodeScalars.append("\\") }
        quoted.unicodeScalars.append(character)
      }
      return quoted + "`"
    }.joined(separator: ".")
  }

  /// Parses the canonical written form; nil on a syntax error.
  public init?(_ text: String) {
    var segments: [String] = []
    var scalars = text.unicodeScalars[...]
    while true {
      var segment = String.UnicodeScalarView()
      if scalars.first == "`" {
        scalars.removeFirst()
        while let scalar = scalars.popFirst(), scalar != "`" {
          if scalar == "\\" {
            guard let escaped = scalars.popFirst() else { return nil }
            segment.append(escaped)
          } else {
            segment.append(scalar)
          }
          if scalars.isEmpty { return nil }
        }
        guard !segment.isEmpty else { return nil }
      } else {
        while let scalar = scalars.first, scalar != "." {
          segment.append(scalar)
          scalars.removeFirst()
        }
        guard Self.isSimple(String(segment)) else { return nil }
      }
      segments.append(String(segment))
      guard let separator = scalars.popFirst() else { break }
      guard separator == "." else { return nil }
    }
    self.segments = segments
  }

  /// Parses a path in the form that Firestore's clients use; nil on a syntax error.
  ///
  /// The form is either the canonical spelling with backquotes, or segments separated by dots. The
  /// segments may contain any characters except `~*/[]` and the backquote.
  package init?(clientText text: String) {
    if let path = FieldPath(text) {
      self = path
      return
    }
    let segments = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard segments.allSatisfy({ !$0.isEmpty }), !text.contains(where: "~*/[]`".contains) else {
      return nil
    }
    self.init(segments)
  }

  private static func isSimple(_ segment: String) -> Bool {
    guard let first = segment.utf8.first else { return false }
    func isLetter(_ byte: UInt8) -> Bool {
      (65...90).contains(byte) || (97...122).contains(byte) || byte == 95
    }
    return isLetter(first)
      && segment.utf8.allSatisfy { isLetter($0) || (48...57).contains($0) }
  }
}

extension FieldPath: ExpressibleByStringLiteral {
  /// Creates a path from a literal such as `"address.city"`.
  ///
  /// Dots separate segments. A name that contains a dot or one of `~*/[]` stands between
  /// backquotes. A literal is part of the program and cannot throw, so one that is no path stops
  /// the program where it is first used. For text that is known only at run time use `init(_:)`,
  /// which returns nil, or give the segments.
  public init(stringLiteral text: String) {
    guard let path = FieldPath(clientText: text) else {
      preconditionFailure(
        "\"\(text)\" is not a field path; put unusual names between backquotes, as in `a.b`.c"
      )
    }
    self = path
  }
}

extension FieldPath: Comparable {
  /// Compares segment by segment in UTF-8 order; a path comes before the paths below it.
  public static func < (left: FieldPath, right: FieldPath) -> Bool {
    for (a, b) in zip(left.segments, right.segments) {
      let order = ValueOrder.compareText(a, b)
      if order != .equal { return order == .less }
    }
    return left.segments.count < right.segments.count
  }
}
