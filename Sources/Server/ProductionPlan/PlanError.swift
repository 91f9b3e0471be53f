/// The reason why functions cannot be planned for production.
package struct PlanError: Error, CustomStringConvertible, Hashable {
  /// The problems, one a line, each with the function's name and what to change.
  package var description: String

  init(_ description: String) {
    self.description = description
  }
}
