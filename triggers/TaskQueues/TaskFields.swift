import JSONText
import StatusCodes

/// A reader of a request's object that rejects members that were not read.
///
/// Names may be written as in protobuf's JSON (`scheduleTime`) or as in its definitions
/// (`schedule_time`). Production accepts both.
struct TaskFields {
  /// The object's path in the request, used in error messages; empty at the top level.
  private let path: String
  private var members: [String: JSONValue] = [:]
  private var unread: [String: String] = [:]

  init(_ json: JSONValue, at path: String) throws(StatusError) {
    self.path = path
    guard case .object(let object) = json else {
      throw .invalidArgument("\(path.isEmpty ? "The request" : path) must be a JSON object.")
    }
    for (name, value) in object where value != .null {
      members[Self.camelCase(name)] = value
      unread[Self.camelCase(name)] = name
    }
  }

  mutating func string(_ name: String) throws(StatusError) -> String? {
    guard let value = take(name) else { return nil }
    guard case .string(let text) = value else {
      throw .invalidArgument("\(place(name)) must be a string.")
    }
    return text
  }

  /// Reads an enum value, given by name or by its index in `names`, as ProtoJSON allows.
  mutating func enumeration(_ name: String, _ names: [String]) throws(StatusError) -> String? {
    guard case .number(let number)? = members[name] else { return try string(name) }
    _ = take(name)
    guard let index = Int(exactly: number), names.indices.contains(index) else {
      throw .invalidArgument(
        "\(place(name)) is not the number of one of: \(names.joined(separator: ", "))."
      )
    }
    return names[index]
  }

  mutating func object(_ name: String) throws(StatusError) -> TaskFields? {
    guard let value = take(name) else { return nil }
    return try TaskFields(value, at: place(name))
  }

  mutating func strings(_ name: String) throws(StatusError) -> [String: String] {
    guard let value = take(name) else { return [:] }
    guard case .object(let object) = value else {
      throw .invalidArgument("\(place(name)) must be an object of strings.")
    }
    var strings: [String: String] = [:]
    for (key, value) in object {
      guard case .string(let text) = value else {
        throw .invalidArgument("\(place(name)).\(key.prefix(100)) must be a string.")
      }
      strings[key] = text
    }
    return strings
  }

  /// Marks members that have no effect here as read.
  mutating func ignore(_ names: String...) {
    for name in names { _ = take(name) }
  }

  /// Throws if a member was not read, as production does for an unknown member.
  func finish() throws(StatusError) {
    guard let name = unread.values.min() else { return }
    throw .invalidArgument(
      "Invalid JSON payload received. Unknown name \"\(name.prefix(100))\""
        + (path.isEmpty ? "" : " at '\(path)'") + ": Cannot find field."
    )
  }

  private mutating func take(_ name: String) -> JSONValue? {
    unread[name] = nil
    return members[name]
  }

  private func place(_ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

  private static func camelCase(_ name: String) -> String {
    guard name.utf8.count <= nameBytesMax else { return name }
    let parts = name.split(separator: "_")
    guard parts.count > 1 else { return name }
    return parts.dropFirst().reduce(String(parts[0])) {
      $0 + $1.prefix(1).uppercased() + $1.dropFirst()
    }
  }

  /// The maximum length of a member's name that may be a field's; joining its words is quadratic.
  private static let nameBytesMax = 100
}
