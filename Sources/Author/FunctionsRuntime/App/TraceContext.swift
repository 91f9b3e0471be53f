import Identifiers

/// A request's position in a trace, in the form that Cloud Logging needs.
package struct TraceContext: Sendable, Hashable {
  /// The trace id, 32 hexadecimal digits.
  package var traceID: String
  /// The span id, 16 hexadecimal digits; nil if the caller named no span.
  package var spanID: String?
  package var isSampled: Bool

  /// Reads the W3C header `traceparent`, or else Google's older `X-Cloud-Trace-Context`.
  ///
  /// Nil if neither is well-formed. The request is still served, only without a trace.
  package init?(traceParent: String?, cloudTraceContext: String?) {
    if let traceParent, let context = Self(traceParent: traceParent) {
      self = context
    } else if let cloudTraceContext, let context = Self(cloudTraceContext: cloudTraceContext) {
      self = context
    } else {
      return nil
    }
  }

  /// Reads a header of the form `00-TRACE-SPAN-FLAGS`, with all parts in hexadecimal.
  private init?(traceParent: String) {
    let parts = traceParent.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count >= 4, parts[0].utf8.count == 2, parts[0] != "ff",
      Self.isID(parts[1], digits: 32), Self.isID(parts[2], digits: 16),
      let flags = UInt8(parts[3], radix: 16)
    else { return nil }
    traceID = parts[1].lowercased()
    spanID = parts[2].lowercased()
    isSampled = flags & 1 == 1
  }

  /// Reads a header of the form `TRACE/SPAN;o=OPTIONS`, with the span in decimal.
  ///
  /// Only the trace is required.
  private init?(cloudTraceContext: String) {
    let halves = cloudTraceContext.split(separator: ";", maxSplits: 1)
    let ids = halves.first?.split(separator: "/", maxSplits: 1) ?? []
    guard let trace = ids.first, Self.isID(trace, digits: 32) else { return nil }
    traceID = trace.lowercased()
    if ids.count == 2, let span = UInt64(ids[1]), span > 0 {
      spanID = span.hexDigits
    }
    isSampled = halves.count == 2 && halves[1] == "o=1"
  }

  private static func isID(_ text: Substring, digits: Int) -> Bool {
    // Compares bytes rather than characters for speed, because this runs in each invocation.
    text.utf8.count == digits && text.utf8.contains { $0 != UInt8(ascii: "0") }
      && text.utf8.allSatisfy {
        (48...57).contains($0) || (65...70).contains($0) || (97...102).contains($0)
      }
  }
}
