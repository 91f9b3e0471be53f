import JSONText
import Testing

@Suite("Members of an object and elements of an array, as they were written")
struct JSONPartsTests {
  @Test("Each member keeps its text")
  func members() throws {
    let text = #" { "a" : 1.50 , "b":{ "c": [1, 2] },"é":"\u0041","a":  12345678901234567890123 } "#
    let members = try jsonMembers(of: Array(text.utf8))?.mapValues {
      String(decoding: $0, as: UTF8.self)
    }

    #expect(
      members == ["a": "12345678901234567890123", "b": #"{ "c": [1, 2] }"#, "é": #""\u0041""#]
    )
    #expect(try jsonMembers(of: Array("{}".utf8)) == [:])
  }

  @Test("Other JSON has no members", arguments: ["[]", " 1", #""{}""#, "null", "[{}]"])
  func others(text: String) throws {
    #expect(try jsonMembers(of: Array(text.utf8)) == nil)
  }

  @Test("Each element keeps its text")
  func elements() throws {
    let text = #" [ 1.50 ,{"c": [1, 2] },"\u0041",[], 12345678901234567890123 ] "#
    let elements = try jsonElements(of: Array(text.utf8))?.map {
      String(decoding: $0, as: UTF8.self)
    }

    #expect(
      elements == ["1.50", #"{"c": [1, 2] }"#, #""\u0041""#, "[]", "12345678901234567890123"]
    )
    #expect(try jsonElements(of: Array("[]".utf8)) == [])
    #expect(try jsonElements(of: Array("{}".utf8)) == nil)
    #expect(throws: JSONSyntaxError(offset: 3, reason: "an unexpected end")) {
      try jsonElements(of: Array("[1,".utf8))
    }
  }

  @Test(
    "The whole text is checked",
    arguments: [
      ("{]", 1), (#"{"a":[1,]}"#, 8), (#"{"a":1}x"#, 7), ("[1", 2), ("[] []", 3), ("", 0),
      (#"{"a":1e999}"#, 5), (#"{"\ud800":1}"#, 4),
    ]
  )
  func malformed(text: String, offset: Int) {
    let error = #expect(throws: JSONSyntaxError.self) { try jsonMembers(of: Array(text.utf8)) }
    #expect(error?.offset == offset)
  }

  @Test("A name with a lone surrogate is taken where the caller says so")
  func loneSurrogates() throws {
    let members = try jsonMembers(of: Array(#"{"\ud800":1}"#.utf8), loneSurrogates: .replaced)

    #expect(members == ["\u{FFFD}": Array("1".utf8)])
  }
}
