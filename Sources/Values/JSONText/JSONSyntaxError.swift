/// An error in a text that is not valid JSON.
@usableFromInline
package struct JSONSyntaxError: Error, Equatable {
  /// The position of the error, in bytes from the start.
  package var offset: Int
  /// The problem, as the continuation of "is not JSON:".
  package var reason: String

  @usableFromInline
  package init(offset: Int, reason: String) {
    self.offset = offset
    self.reason = reason
  }
}
