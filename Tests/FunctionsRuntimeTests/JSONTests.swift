import DocumentModel
import JSONText
import TestSupport
import Testing

@testable import FunctionsRuntime

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

@Suite("JSON of callables")
struct JSONTests {
  @Test(
    "Well-formed JSON is read",
    arguments: [
      ("null", .null), (" true\n", .boolean(true)), ("-0", .double(-0.0)), ("0", .integer(0)),
      ("-9223372036854775808", .integer(.min)), ("1e2", .double(100)), ("1.50", .double(1.5)),
      ("[]", .array([])), ("{ }", .map([:])), (#""""#, .string("")),
      (#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00""#, .string("a\"\\/\u{8}\u{c}\n\r\té😀")),
      (#""\ud83dx\ude00""#, .string("\u{FFFD}x\u{FFFD}")),
      (#"{"a":1,"a":2}"#, .map(["a": .integer(2)])),
      ("18446744073709551615", WrappedInteger.map(WrappedInteger.unsigned, "18446744073709551615")),
      (#"{"@type":"type.googleapis.com/google.protobuf.UInt64Value","value":"7"}"#, .integer(7)),
    ] as [(String, FirestoreValue)]
  )
  func read(text: String, value: FirestoreValue) throws {
    #expect(try JSONReader.read(text.utf8) == value)
  }

  @Test(
    "What is no JSON, or beyond our numbers, is refused where it goes wrong",
    arguments: [("", 0), ("[1,]", 3), ("{\"a\":1,}", 7), ("1e999", 0), ("1 2", 2)]
  )
  func malformed(text: String, offset: Int) {
    let error = #expect(throws: JSONSyntaxError.self) { try JSONReader.read(text.utf8) }
    #expect(error?.offset == offset)
  }

  @Test("Random values survive writing and reading, and Foundation reads the same")
  func random() throws {
    var generator = SeededGenerator.forTest()
    for _ in 0..<300 {
      let value = Self.value(depth: 0, &generator)
      let bytes = try JSONWriter.write(value)

      #expect(try JSONReader.read(bytes) == value)
      _ = try JSONDecoder().decode(FirestoreValue.self, from: Data(bytes))
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
      if let value = try? JSONReader.read(bytes) {
        #expect(throws: Never.self) { try JSONWriter.write(value) }
      }
    }
  }

  @Test("What JSON has no type for is written in a readable form")
  func otherTypes() throws {
    let value = FirestoreValue.map([
      "at": .timestamp(Timestamp(microseconds: 0)), "blob": .bytes([0, 255]),
      "place": .geoPoint(GeoPoint(latitude: 1, longitude: 2.5)), "vector": .vector([1]),
    ])
    let text = String(decoding: try JSONWriter.write(value), as: UTF8.self)

    #expect(
      text == #"{"at":"1970-01-01T00:00:00Z","blob":"AP8=","#
        + #""place":{"latitude":1.0,"longitude":2.5},"vector":[1.0]}"#
    )
    let error = #expect(throws: ValueCodingError.self) {
      try JSONWriter.write(.map(["a": .array([.integer(1), .map(["b": .double(.nan)])])]))
    }
    #expect(error?.path == "a[1].b")
  }

  private static func value(depth: Int, _ generator: inout SeededGenerator) -> FirestoreValue {
    switch Int.random(in: 0..<(depth < 4 ? 8 : 6), using: &generator) {
    case 0: .null
    case 1: .boolean(.random(using: &generator))
    case 2: .integer(.random(in: .min ... .max, using: &generator))
    case 3: .integer(.random(in: -10...10, using: &generator))
    case 4: .double(Double(Int.random(in: -1000...1000, using: &generator)) / 8 + 0.0625)
    case 5: .string(string(&generator))
    case 6:
      .array(
        (0..<Int.random(in: 0..<4, using: &generator)).map { _ in
          value(depth: depth + 1, &generator)
        }
      )
    default:
      .map(
        MapValue(
          (0..<Int.random(in: 0..<4, using: &generator)).map { _ in
            (string(&generator), value(depth: depth + 1, &generator))
          }
        )
      )
    }
  }

  private static func string(_ generator: inout SeededGenerator) -> String {
    let alphabet = Array("ab\"\\/\n\t\u{1}\u{7f}é😀\u{2028}")
    return String(
      (0..<Int.random(in: 0..<6, using: &generator)).compactMap { _ in
        alphabet.randomElement(using: &generator)
      }
    )
  }
}
