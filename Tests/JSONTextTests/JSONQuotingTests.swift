import JSONText
import Testing

@Suite("Quoting strings as JSON")
struct JSONQuotingTests {
  @Test("Quoting escapes quotes, backslashes and control characters only")
  func quoting() {
    #expect(jsonQuoted("a\"b\\c\n\u{1}é/\u{1F600}") == "\"a\\\"b\\\\c\\n\\u0001é/\u{1F600}\"")
    #expect(jsonQuoted("\t\r\u{8}\u{1f}\u{7f}") == "\"\\t\\r\\u0008\\u001f\u{7f}\"")
    #expect(jsonQuoted("") == "\"\"")
  }
}
