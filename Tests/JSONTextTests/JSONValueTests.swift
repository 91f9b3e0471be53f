import JSONText
import TestSupport
import Testing

@Suite("JSON values")
struct JSONValueTests {
  private static let texts: [(String, JSONValue)] = [
    ("null", .null), (" true ", true), ("[]", []), ("{}", [:]), ("-0.5e2", .number(-50)),
    ("[1, 2.5,-3]", .numbers([1, 2.5, -3])), (#"[1,"a",2]"#, [1, "a", 2]),
    (#"["a",1,[2]]"#, ["a", 1, .numbers([2])]),
    (#"{"a":{"b":null},"c":[]}"#, ["a": ["b": .null], "c": []]),
    (#""q\"\\\/\b\f\n\r\té""#, "q\"\\/\u{8}\u{c}\n\r\té"), (#""\ud83d\ude00\u0000""#, "😀\0"),
    ("12345678901234567890", .number(12_345_678_901_234_567_168)), ("0.1", .number(0.1)),
    (#"{"a":1,"a":2}"#, ["a": 2]),
  ]

  @Test("A text is read as what it is", arguments: texts)
  func reads(text: String, expected: JSONValue) throws {
    #expect(try JSONValue.parse(text.utf8) == expected)
  }

  @Test(
    "What is no JSON is refused, lone surrogates too",
    arguments: ["", "[1,]", "01", "NaN", #""\ud800""#, #""\ud800\u0041""#, "1 2", "1e400"]
  )
  func refuses(text: String) {
    #expect(throws: JSONSyntaxError.self) { try JSONValue.parse(text.utf8) }
  }

  @Test("Numbers are read to the last bit, and written so that they read back")
  func numbers() throws {
    var generator = SeededGenerator.forTest()
    for _ in 0..<2000 {
      let number = Double(bitPattern: generator.next())
      guard number.isFinite else { continue }
      for number in [number, Double(Float(number)), number.rounded(), number / 1e300]
      where number.isFinite {
        #expect(try JSONValue.parse("\(number)".utf8) == .number(number))
        #expect(try JSONValue.parse(JSONValue.number(number).bytes) == .number(number))
      }
      let float = Float.random(in: -1...1, using: &generator)
      guard case .numbers(let read) = try JSONValue.parse(JSONValue.floats([float]).bytes) else {
        Issue.record("not a list of numbers")
        return
      }
      #expect(read.map { Float($0) } == [float])
    }
  }

  @Test("What is written is JSON, with the keys of objects in order")
  func writes() {
    let json: JSONValue = [
      "b": [1, .number(2.5), .float(0.1), .null, .number(.nan)], "a": "q\"\u{1}", "c": .floats([]),
      "d": nil,
    ]
    #expect(
      String(decoding: json.bytes, as: UTF8.self)
        == #"{"a":"q\"\u0001","b":[1,2.5,0.1,null,null],"c":[]}"#
    )
  }
}
