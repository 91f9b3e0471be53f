/// The cause of the current work: the delivery that made a function run.
///
/// A worker sets the cause around a handler, from the invocation's header. The Firestore client
/// repeats it in the requests that the handler sends. Firestore's endpoints set it again, and the
/// event log stores it with the commit. In this way an event knows the event that caused it and
/// belongs to its trace.
package enum EventCause {
  /// The current cause: `{delivery's id};{depth};{traceparent};{signature}`.
  ///
  /// Each part may be missing. A worker has the signature, which proves to the server that the
  /// cause is one of its own. See `CauseSignature`.
  ///
  /// Nil for work that no event caused and that belongs to no trace, and in detached tasks.
  @TaskLocal package static var current: String?

  /// The header that carries the cause between processes, in lower case.
  package static let headerName = "x-hearth-cause"

  /// The maximum length of a cause; longer texts are not from Hearth.
  private static let bytesMax = 256

  /// Runs `body` with the cause from a header; missing or malformed text sets no cause.
  ///
  /// A server passes the header of a request through `CauseSignature.verified` before.
  /// `traceParent` is the W3C `traceparent` header of the same request. A valid one becomes the
  /// trace of the cause.
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
    let known = header.flatMap { $0.utf8.count > bytesMax ? nil : $0 } ?? ""
    var parts = known.split(separator: ";", maxSplits: 3, omittingEmptySubsequences: false)
      .map(String.init)
    parts += Array(repeating: "", count: 4 - parts.count)
    parts[2] = [traceParent, parts[2]].compactMap(\.self).first(where: TraceParent.isValid) ?? ""
    while parts.last == "" { parts.removeLast() }
    return parts.isEmpty ? nil : parts.joined(separator: ";")
  }

  /// Returns the trace of a cause, in the form of the W3C header `traceparent`.
  package static func traceParent(of cause: String) -> String? {
    cause.split(separator: ";", omittingEmptySubsequences: false).dropFirst(2).first.map(
      String.init
    )
  }
}
