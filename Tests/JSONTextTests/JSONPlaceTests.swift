import JSONText
import Testing

@Suite("Place of a JSON error")
struct JSONPlaceTests {
  @Test(
    "The place, what was expected and the line are named",
    arguments: [
      (
        "{'a': 1}",
        """
        line 1, column 2: an unexpected character; JSON has " around names and texts
          {'a': 1}
           ^
        """
      ),
      (
        "{\n\t\"é\": 1,\n}",
        """
        line 3, column 1: an unexpected character; the comma before it is too many
          }
          ^
        """
      ),
      (
        #"{"ü": yes}"#,
        """
        line 1, column 7: an unexpected character; a value is expected, and texts stand in "quotes"
          {"ü": yes}
                ^
        """
      ),
      (
        #"{"a": 1 "b": 2}"#,
        """
        line 1, column 9: an unexpected character; a comma, a colon or the end is expected
          {"a": 1 "b": 2}
                  ^
        """
      ),
      (
        "{a: 1}",
        """
        line 1, column 2: an unexpected character; a name or a value is expected, and names and \
        texts stand in "quotes"
          {a: 1}
           ^
        """
      ),
      (
        #"{"a": ["#,
        """
        line 1, column 8: an unexpected end; a }, ] or " is missing
          {"a": [
                 ^
        """
      ),
      (
        "",
        """
        line 1, column 1: an unexpected end; there is no text
          \("")
          ^
        """
      ),
      (
        #"["a]"#,
        """
        line 1, column 2: a string without an end
          ["a]
           ^
        """
      ),
    ]
  )
  func explained(text: String, explanation: String) throws {
    let bytes = Array(text.utf8)
    let error = try #require(throws: JSONSyntaxError.self) { try jsonMembersInOrder(of: bytes) }

    #expect(error.explanation(in: bytes) == explanation)
  }

  @Test("Of a long line only the part around the place is shown")
  func longLine() throws {
    let bytes = Array(
      "[\(String(repeating: "1,", count: 500))x,\(String(repeating: "1", count: 500))]".utf8
    )
    let error = try #require(throws: JSONSyntaxError.self) { try jsonMembersInOrder(of: bytes) }
    let lines = error.explanation(in: bytes).split(separator: "\n")

    #expect(lines[0].hasPrefix("line 1, column 1002: "))
    #expect(lines[1].count == 74)
    #expect(Array(lines[1])[lines[2].count - 1] == "x")
  }
}
