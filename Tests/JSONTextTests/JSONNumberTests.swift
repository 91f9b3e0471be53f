import JSONText
import TestSupport
import Testing

@Suite("Numbers of JSON")
struct JSONNumberTests {
  @Test(
    "Integers keep their digits, and the rest is the nearest double",
    arguments: [
      ("0", .integer(0)), ("-0", .double(-0.0)), ("-1", .integer(-1)),
      ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
      ("9223372036854775808", .unsigned(1 << 63)), ("18446744073709551615", .unsigned(.max)),
      ("18446744073709551616", .double(18_446_744_073_709_551_616)),
      ("184467440737095516150", .double(184_467_440_737_095_516_160)),
      ("-9223372036854775809", .double(-9_223_372_036_854_775_808)),
      ("12345678901234567890", .unsigned(12_345_678_901_234_567_890)),
      ("1e2", .double(100)), ("1.50", .double(1.5)), ("0.1", .double(0.1)),
      ("-0.5e2", .double(-50)), ("0E+1", .double(0)), ("1e-22", .double(1e-22)),
      ("1e23", .double(1e23)), ("9007199254740993.0", .double(9_007_199_254_740_992)),
      ("1e-400", .double(0)), ("4.9e-324", .double(.leastNonzeroMagnitude)),
    ] as [(String, JSONNumber)]
  )
  func numbers(text: String, number: JSONNumber) throws {
    // Numbers can end at the end of the text or before it.
    guard case .number(let atEnd) = try PlainJSON.read(text.utf8),
      case .array(let elements) = try PlainJSON.read("[\(text) ]".utf8),
      case .number(let within)? = elements.first
    else {
      Issue.record("not a number")
      return
    }
    #expect(Self.isSame(atEnd, number))
    #expect(Self.isSame(within, number))
  }

  @Test("A longer integer's nearest double is rounded once")
  func rounding() {
    #expect(JSONNumber.unsigned(12_345_678_901_234_567_890).double == 12_345_678_901_234_567_168)
    #expect(JSONNumber.integer(9_007_199_254_740_993).double == 9_007_199_254_740_992)
  }

  @Test(
    "What is no number is refused where it goes wrong",
    arguments: [
      ("01", 1), ("-", 1), ("1.", 2), ("1e", 2), ("1e+", 3), (".5", 0), ("+1", 0), ("0x10", 1),
      ("-01", 2), ("1.e1", 2), ("--1", 1), ("1_000", 1),
    ]
  )
  func malformed(text: String, offset: Int) {
    let error = #expect(throws: JSONSyntaxError.self) { try PlainJSON.read(text.utf8) }
    #expect(error?.offset == offset)
  }

  @Test(
    "A number beyond the range of a double is the builder's to refuse, or to take as infinite",
    arguments: [("1e999", 0), ("[-1e400]", 1), (#"{"a": 1e99999999999999999999}"#, 6)]
  )
  func beyondRange(text: String, offset: Int) throws {
    let error = #expect(throws: JSONSyntaxError.self) { try PlainJSON.read(text.utf8) }
    #expect(error?.offset == offset)
    _ = try PlainJSON.readKeepingLists(text.utf8)
  }

  @Test("Numbers are read to the last bit")
  func lastBit() throws {
    var generator = SeededGenerator.forTest()
    for _ in 0..<2000 {
      let number = Double(bitPattern: generator.next())
      guard number.isFinite else { continue }
      for number in [number, Double(Float(number)), number.rounded(), number / 1e300]
      where number.isFinite {
        #expect(try PlainJSON.readKeepingLists("[\(number)]".utf8) == .numbers([number]))
        guard case .number(let read) = try PlainJSON.read("\(number)".utf8) else {
          Issue.record("not a number")
          return
        }
        #expect(read.double == number)
      }
    }
  }

  /// Compares numbers and distinguishes the two zeros.
  private static func isSame(_ one: JSONNumber, _ other: JSONNumber) -> Bool {
    one == other && one.double.sign == other.double.sign
  }
}
