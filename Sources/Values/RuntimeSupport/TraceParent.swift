/// A request's place in a trace, as the W3C's header `traceparent` has it.
package enum TraceParent {
  /// Whether a text is `VERSION-TRACE-SPAN-FLAGS` with ids that are not zero.
  ///
  /// Who gets another text begins a trace of its own (W3C Trace Context, section 3.2).
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
