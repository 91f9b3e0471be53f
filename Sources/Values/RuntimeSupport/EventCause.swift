/// The cause of the present work: the delivery that made a function run.
///
/// A worker sets it around a handler from the header of the invocation, the Firestore client
/// repeats it on what the handler sends, Firestore's doors set it again, and the event log keeps it
/// with the commit. That is how an event knows the event behind it, and belongs to its trace.
package enum EventCause {
  /// `{delivery's id};{depth};{traceparent}`, of which each part may be missing.
  ///
  /// Nil for work that no event caused and that belongs to no trace, and in detached tasks.
  @TaskLocal package static var current: String?

  /// The header that carries the cause between processes, in lower case.
  package static let headerName = "x-hearth-cause"

  /// The longest id; longer texts are not Hearth's ids.
  private static let bytesMax = 200

  /// Runs `body` on behalf of the cause that a header names; nil and malformed text name none.
  ///
  /// `traceParent` is the W3C's header of the same request, whose trace the cause then belongs to.
  package static func with<Result>(
    header: String?,
    traceParent: String? = nil,
    isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> Result
  ) async rethrows -> Result {
    guard let cause = cause(header, traceParent) else { return try await body() }
    return try await $current.withValue(cause, operation: body)
  }

  private static func cause(_ header: String?, _ traceParent: String?) -> String? {
    let known = header.flatMap { $0.isEmpty || $0.utf8.count > bytesMax ? nil : $0 }
    guard let traceParent, TraceParent.isValid(traceParent) else { return known }
    let parts = known?.split(separator: ";", omittingEmptySubsequences: false) ?? []
    return "\(parts.first ?? "");\(parts.dropFirst().first ?? "");\(traceParent)"
  }

  /// The trace that a cause belongs to, as the W3C's header `traceparent` has it.
  package static func traceParent(of cause: String) -> String? {
    cause.split(separator: ";", omittingEmptySubsequences: false).dropFirst(2).first.map(
      String.init
    )
  }
}
