/// An error in the text of rules, with its place.
package struct DatabaseRulesError: Error, Hashable, CustomStringConvertible {
  /// The line, from 1.
  package var line: Int
  /// The column, from 1.
  package var column: Int
  package var message: String

  package init(line: Int, column: Int, message: String) {
    self.line = line
    self.column = column
    self.message = message
  }

  /// The text that production answers: `line:column: message`.
  package var description: String { "\(line):\(column): \(message)" }
}
