import JSONText
import TestSupport
import Testing

@Suite("Reading JSON")
struct JSONParserTests {
  @Test(
    "Well-formed JSON is read",
    arguments: [
      ("null", .null), (" true\n", .boolean(true)), ("\tfalse\r", .boolean(false)),
      ("[]", .array([])), ("{ }", .object([:])), (#""""#, .string("")),
      (#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0000""#, .string("a\"\\/\u{8}\u{c}\n\r\té😀\0")),
      (#""\u00E9é""#, .string("éé")),
      (#"{"a":1,"a":2}"#, .object(["a": .number(.integer(2))])),
      (
        #"["a", [ ] , [[null]],{"b" : {}}]"#,
        .array([
          .string("a"), .array([]), .array([.array([.null])]), .object(["b": .object([:])]),
        ])
      ),
      (#"{"a":{"b":null},"c":[]}"#, .object(["a": .object(["b": .null]), "c": .array([])])),
    ] as [(String, PlainJSON)]
  )
  func read(text: String, value: PlainJSON) throws {
    #expect(try PlainJSON.read(text.utf8) == value)
    #expect(try PlainJSON.read(AnySequence(text.utf8)) == value)
  }

  @Test(
    "Malformed JSON is refused where it goes wrong",
    arguments: [
      ("", 0), (" ", 1), ("nul", 3), ("tru3", 3), ("truex", 4), ("[1,]", 3), ("[1", 2), ("[", 1),
      ("[,1]", 1), ("[1 2]", 3), ("[1}", 2), ("{", 1), ("{\"a\"}", 4), ("{\"a\":1,}", 7),
      ("{a:1}", 1), ("{\"a\":1]", 6), ("{,}", 1), ("]", 0), ("\"a", 0), ("\"\\x\"", 2),
      ("\"\\", 2), ("\"\\u12\"", 5), ("\"\\u12g4\"", 5), ("\"\n\"", 1), ("\"\\n\u{0}\"", 3),
      ("\"\u{0}\"", 1), ("1 2", 2), ("[1]\u{0}", 3), ("NaN", 0), ("Infinity", 0), ("'a'", 0),
      ("\u{FEFF}1", 0),
    ]
  )
  func malformed(text: String, offset: Int) {
    let error = #expect(throws: JSONSyntaxError.self) { try PlainJSON.read(text.utf8) }
    let same = #expect(throws: JSONSyntaxError.self) { try PlainJSON.readKeepingLists(text.utf8) }

    #expect(error?.offset == offset)
    #expect(same == error)
  }

  @Test(
    "An error says what is wrong",
    arguments: [
      ("[1", "an unexpected end"), ("[1}", "an unexpected character"),
      ("\"a", "a string without an end"), ("\"\\n\n\"", "a control character within a string"),
      ("1e999", "a number beyond the range of a double"), (#""\ud800""#, "half of a pair"),
      (String(repeating: "[", count: 129), "nested more than 128 levels deep"),
    ]
  )
  func reasons(text: String, reason: String) {
    let error = #expect(throws: JSONSyntaxError.self) { try PlainJSON.read(text.utf8) }
    #expect(error?.reason.hasPrefix(reason) == true)
  }

  @Test("Bytes that are not UTF-8 are refused, within strings with escapes too")
  func notUTF8() {
    for bytes: [UInt8] in [[34, 0xFF, 34], [34, 92, 110, 0xC3, 34], [0xFF]] {
      #expect(throws: JSONSyntaxError.self) { try PlainJSON.read(bytes) }
    }
  }

  @Test(
    "A lone surrogate is refused or replaced",
    arguments: [
      (#""\ud83dx\ude00""#, "\u{FFFD}x\u{FFFD}", 3), (#""\ud800""#, "\u{FFFD}", 3),
      (#""\ud800\u0041""#, "\u{FFFD}A", 3), (#""a\ude00\n""#, "a\u{FFFD}\n", 4),
      (#""\ud800\n""#, "\u{FFFD}\n", 3), (#""\ud83d\ud83d\ude00""#, "\u{FFFD}😀", 3),
    ]
  )
  func loneSurrogates(text: String, replaced: String, offset: Int) throws {
    #expect(try PlainJSON.read(text.utf8, loneSurrogates: .replaced) == .string(replaced))
    let error = #expect(throws: JSONSyntaxError.self) { try PlainJSON.read(text.utf8) }
    #expect(error?.offset == offset)
  }

  @Test("Nesting is bounded")
  func depth() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }
    let most = JSONScanner.depthMax

    _ = try PlainJSON.read(nested(most).utf8)
    _ = try PlainJSON.read("[\(nested(most - 1)),\(nested(most - 1))]".utf8)
    _ = try PlainJSON.readKeepingLists("[[1],\(nested(most - 1))]".utf8)
    for depth in [most + 1, most + 2, 1000, 100_000] {
      let error = #expect(throws: JSONSyntaxError.self) { try PlainJSON.read(nested(depth).utf8) }
      #expect(error?.offset == most)
      #expect(throws: JSONSyntaxError.self) {
        try PlainJSON.read(String(repeating: #"{"a":"#, count: depth).utf8)
      }
    }
  }

  @Test(
    "The number of values can be bounded, and the rest is not read",
    arguments: [
      ("1", 1), ("[1, {}]", 3), (#"{"a":1,"a":[2]}"#, 4), (#"[[],[],[]]"#, 4),
      ("[[1,2],3]", 5),
    ]
  )
  func values(text: String, count: Int) throws {
    _ = try PlainJSON.read(text.utf8, valuesMax: count)
    for most in 0..<count {
      let error = #expect(throws: JSONSyntaxError.self) {
        try PlainJSON.read(text.utf8, valuesMax: most)
      }
      #expect(error?.reason == "a value beyond the \(most) that it may have")
    }
    #expect(throws: Never.self) { try JSONValue.parse(text.utf8, valuesMax: count) }
    #expect(throws: JSONSyntaxError.self) { try JSONValue.parse(text.utf8, valuesMax: count - 1) }
    // The damage comes after the value that is too many.
    let error = #expect(throws: JSONSyntaxError.self) {
      try PlainJSON.read("[\(text),1?".utf8, valuesMax: count + 1)
    }
    #expect(error?.offset == text.utf8.count + 2)
  }

  @Test("A builder that keeps lists of numbers gets those that hold nothing else")
  func numberLists() throws {
    let expected: [(String, PlainJSON)] = [
      ("[1, 2.5,-3]", .numbers([1, 2.5, -3])), ("[]", .array([])), ("[ 7 ]", .numbers([7])),
      ("[1e400]", .numbers([.infinity])),
      (#"[1,"a",2]"#, .array([.number(.integer(1)), .string("a"), .number(.integer(2))])),
      (
        #"{"a":[[1],[2,null]]}"#,
        .object(["a": .array([.numbers([1]), .array([.number(.integer(2)), .null])])])
      ),
    ]
    for (text, value) in expected {
      #expect(try PlainJSON.readKeepingLists(text.utf8) == value)
    }
    for text in ["[1", "[1,", "[1,]", "[1 2]", "[01]", "[1}", "[1,-]"] {
      #expect(throws: JSONSyntaxError.self) { try PlainJSON.readKeepingLists(text.utf8) }
    }
  }

  @Test("Random damage never crashes the reader")
  func damage() throws {
    var generator = SeededGenerator.forTest()
    let text = Array(#"{"a":[1,-2.5e3,"x\u00e9\n",{"b":null,"c":[true,false]}],"d":"é"}"#.utf8)
    for _ in 0..<2000 {
      var bytes = text
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        let index = Int.random(in: 0..<bytes.count, using: &generator)
        bytes[index] = UInt8.random(in: 0...255, using: &generator)
      }
      bytes.removeLast(Int.random(in: 0..<bytes.count, using: &generator))
      guard let value = try? PlainJSON.read(bytes) else {
        _ = try? PlainJSON.readKeepingLists(bytes)
        #expect(throws: JSONSyntaxError.self) { try jsonMembers(of: bytes) }
        continue
      }
      let members = try jsonMembers(of: bytes)

      #expect(throws: Never.self) { try PlainJSON.readKeepingLists(bytes) }
      if case .object(let object) = value {
        #expect(members?.keys.sorted() == object.keys.sorted())
      } else {
        #expect(members == nil)
      }
    }
  }
}
