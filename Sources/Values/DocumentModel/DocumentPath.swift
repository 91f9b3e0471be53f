/// The paths of documents of one kind, with a property for each part that varies.
///
/// ```swift
/// struct MessagePath: DocumentPath {
///   var chatID = ""
///   var messageID = ""
///
///   static let pattern: Pattern = "chats/\(\.chatID)/messages/\(\.messageID)"
/// }
/// ```
///
/// A trigger declared with `path: MessagePath.self` passes the parts to its handler, so the
/// compiler checks their names and types. `Firestore.document(_:)` takes such a path too. Every
/// stored property must be in the pattern; an app with a path that lacks one does not start.
public protocol DocumentPath: Sendable {
  /// Creates a path whose parts are placeholders, which are replaced by the parts of a document.
  init()

  /// The pattern of the paths, with a property for each id that varies.
  static var pattern: Pattern { get }
}

extension DocumentPath {
  /// The type of `pattern`.
  public typealias Pattern = DocumentPattern<Self>

  /// The path of the document that the properties name.
  ///
  /// An id that contains a slash cannot point elsewhere: the path has it as one segment, and a
  /// client refuses it where the path is used.
  public var documentPath: ResourcePath { Self.pattern.resourcePath(of: self) }
}

/// The pattern of the paths of documents, as a literal such as `"users/\(\.userID)"`.
///
/// Each interpolated property is one whole segment. A malformed pattern is reported when an app
/// with it starts.
public struct DocumentPattern<Path: DocumentPath>: Sendable {
  fileprivate enum Part: Sendable {
    case literal(String)
    case parameter(Parameter)
  }

  fileprivate struct Parameter: Sendable {
    var name: String
    var type: any PathParameter.Type
    var read: @Sendable (Path) -> String
    /// Sets the property, or returns false if the text is not exactly a value of its type.
    var write: @Sendable (inout Path, String) -> Bool
  }

  fileprivate var parts: [Part]

  private var parameters: [Parameter] {
    parts.compactMap { if case .parameter(let parameter) = $0 { parameter } else { nil } }
  }

  /// The pattern as Eventarc writes it, such as `users/{userID}`.
  package var text: String {
    parts.map { part in
      switch part {
      case .literal(let text): text
      case .parameter(let parameter): "{\(parameter.name)}"
      }
    }.joined()
  }

  /// The problems that only the path's type can have, as sentence endings.
  package var problems: [String] {
    let captured = parameters.map(\.name)
    let missing = Mirror(reflecting: Path()).children.compactMap(\.label)
    guard missing.count > captured.count else { return [] }
    let names = missing.filter { !captured.contains($0) }.joined(separator: "' and '")
    return [
      "cannot be triggered. \(Path.self) has the property '\(names)', which its pattern "
        + "\"\(text)\" lacks; add it, as in users/\\(\\.userID), or compute it."
    ]
  }

  /// Creates a path from the captures of `text`; throws for a capture of another type.
  package func path(from captures: [String: String]) throws(PathParameterError) -> Path {
    var path = Path()
    for parameter in parameters {
      let segment = captures[parameter.name] ?? ""
      guard parameter.write(&path, segment) else {
        throw PathParameterError(
          message:
            "'\(segment)' at {\(parameter.name)} of \"\(text)\" is not of type \(parameter.type)"
        )
      }
    }
    return path
  }

  fileprivate func resourcePath(of path: Path) -> ResourcePath {
    var segments = [""]
    for part in parts {
      switch part {
      case .parameter(let parameter): segments[segments.count - 1] += parameter.read(path)
      case .literal(let text):
        let ids = ResourcePath(slashSeparated: text).segments
        segments[segments.count - 1] += ids.first ?? ""
        segments += ids.dropFirst()
      }
    }
    return ResourcePath(segments)
  }
}

extension DocumentPattern: ExpressibleByStringInterpolation {
  /// The literal parts and the properties of a pattern.
  public struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var parts: [Part] = []

    /// Creates an empty interpolation.
    public init(literalCapacity: Int, interpolationCount: Int) {
      parts.reserveCapacity(interpolationCount * 2 + 1)
    }

    /// Appends ids that every path has.
    public mutating func appendLiteral(_ literal: String) {
      if !literal.isEmpty { parts.append(.literal(literal)) }
    }

    /// Appends a property that holds one id of the path.
    public mutating func appendInterpolation<Value: PathParameter>(
      _ property: any WritableKeyPath<Path, Value> & Sendable
    ) {
      let parameter = Parameter(
        name: Self.name(of: property) ?? "id\(parts.count)",
        type: Value.self,
        read: { $0[keyPath: property].pathSegment },
        write: { path, segment in
          // A value that is written differently would name another document.
          guard let value = Value.read(pathSegment: segment),
            value.pathSegment.isIdentical(to: segment)
          else { return false }
          path[keyPath: property] = value
          return true
        }
      )
      parts.append(.parameter(parameter))
    }

    /// Returns a property's name; nil if the program was built without the names of properties.
    private static func name(of property: AnyKeyPath) -> String? {
      let name = String(describing: property).split(separator: ".").last ?? ""
      let isName =
        name.first?.isNumber == false
        && name.utf8.allSatisfy { byte in
          (65...90).contains(byte) || (97...122).contains(byte) || (48...57).contains(byte)
            || byte == 95
        }
      return isName ? String(name) : nil
    }
  }

  /// Creates a pattern from a literal with properties.
  public init(stringInterpolation: StringInterpolation) { parts = stringInterpolation.parts }

  /// Creates the pattern of a single document.
  public init(stringLiteral value: String) { parts = [.literal(value)] }
}

extension DocumentPattern: CustomStringConvertible {
  /// The pattern as Eventarc writes it, such as `users/{userID}`.
  public var description: String { text }
}

/// The error of a path whose id is not a value of its property's type.
package struct PathParameterError: Error, CustomStringConvertible {
  package var message: String
  package var description: String { message }
}
