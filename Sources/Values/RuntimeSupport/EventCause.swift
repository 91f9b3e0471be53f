/// The cause of the present work: the delivery that made a function run.
///
/// A worker sets it around a handler from the header of the invocation, the Firestore client
/// repeats it on what the handler sends, Firestore's doors set it again, and the event log keeps it
/// with the commit. That is how an event knows the event behind it.
package enum EventCause {
  /// The id of the delivery; nil for work that no event caused, and in detached tasks.
  @TaskLocal package static var current: String?

  /// The header that carries the cause between processes, in lower case.
  package static let headerName = "x-hearth-cause"

  /// The longest id; longer texts are not Hearth's ids.
  private static let bytesMax = 200

  /// Runs `body` on behalf of the cause that a header names; nil and malformed text name none.
  package static func with<Result>(
    header: String?,
    isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> Result
  ) async rethrows -> Result {
    guard let header, !header.isEmpty, header.utf8.count <= bytesMax else {
      return try await body()
    }
    return try await $current.withValue(header, operation: body)
  }
}
