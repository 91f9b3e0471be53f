import JSONText

extension JSONTree {
  /// The members of an object; nil for any other value.
  var members: [(String, JSONTree)]? {
    guard case .object(let members) = self else { return nil }
    return members
  }

  /// The last member with a name; nil if there is none, or if the value is not an object.
  subscript(name: String) -> JSONTree? { members?.last { $0.0 == name }?.1 }

  var text: String? {
    guard case .string(let text) = self else { return nil }
    return text
  }

  /// An integer that every client can hold; nil for any other value.
  var integer: Int? {
    guard case .number(let number) = self else { return nil }
    return Int(exactly: number.double)
  }

  var isNull: Bool {
    if case .null = self { true } else { false }
  }
}
