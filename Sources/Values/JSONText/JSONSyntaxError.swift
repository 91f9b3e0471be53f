/// Why a text is not JSON.
@usableFromInline
package struct JSONSyntaxError: Error, Equatable {
  /// The place of the error, in bytes from the start.
  package var offset: Int
  /// What is there instead, as the continuation of "is not JSON:".
  package var reason: String

  /// An error at a place.
  @usableFromInline
  package init(offset: Int, reason: String) {
    self.offset = offset
    self.reason = reason
  }
}
