/// A request's position in a trace, as in the W3C header `traceparent`.
package enum TraceParent {
  /// Returns true if a text has the form `VERSION-TRACE-SPAN-FLAGS` with nonzero ids.
  ///
  /// The receiver of any other text starts its own trace (W3C Trace Context, section 3.2).
  package static func isValid(_ text: String) -> Bool {
    let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard text.utf8.count == 55, parts.map(\.count) == [2, 32, 16, 2] else { return false }
    let areDigits = parts.joined().allSatisfy {
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
        || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
    }
    return areDigits && !parts[0].elementsEqual("ff".utf8)
      && parts[1...2].allSatisfy { id in id.contains { $0 != UInt8(ascii: "0") } }
  }
}
