import JSONText

/// An error in a value that a client wants to write, with the text that production answers.
package struct DatabaseDataError: Error, Hashable {
  package var message: String
  private var key: String?

  package static let notJSON = DatabaseDataError(
    "Invalid data; couldn't parse JSON object, array, or value."
  )
  package static let tooDeep = DatabaseDataError(
    "Invalid data; a path is deeper than \(DatabasePath.depthMax) keys."
  )
  static let stringTooLong = DatabaseDataError(
    "Invalid data; a string is longer than \(DatabaseLeaf.stringBytesMax) bytes."
  )
  package static let notAnObject = DatabaseDataError(
    "Invalid data; couldn't parse JSON object. Are you sending a JSON object with valid key names?"
  )
  static let invalidPriority = DatabaseDataError(
    "Invalid data; a priority must be a string, a number or null."
  )
  static let invalidServerValue = DatabaseDataError("Invalid data; an unknown server value.")

  package static func invalidKey(_ key: String) -> DatabaseDataError {
    DatabaseDataError(keyMessage(line: 1, column: 1), key: key)
  }

  private init(_ message: String, key: String? = nil) {
    self.message = message
    self.key = key
  }

  /// Returns the error with the place of an invalid key in the text that was parsed.
  package func placed(in text: [UInt8]) -> DatabaseDataError {
    guard let key else { return self }
    var quoted: [UInt8] = []
    quoted.appendJSONQuoted(key)
    guard let start = text.indices.first(where: { text[$0...].starts(with: quoted) }) else {
      return self
    }
    let before = text[..<start]
    let newline = UInt8(ascii: "\n")
    let line = before.count { $0 == newline } + 1
    let column = start - (before.lastIndex(of: newline) ?? -1)
    return DatabaseDataError(Self.keyMessage(line: line, column: column))
  }

  private static func keyMessage(line: Int, column: Int) -> String {
    "Invalid data; couldn't parse key beginning at \(line):\(column). "
      + "Key value can't be empty or contain $ # [ ] / or ."
  }
}
