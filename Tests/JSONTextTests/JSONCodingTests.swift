import JSONText
import Testing

@Suite("Values encoded as JSON")
struct JSONCodingTests {
  private struct Place: Codable, Equatable {
    var path: String
    var depth: Int?
  }

  @Test("Equal values have equal bytes, with sorted keys and plain slashes")
  func encodes() throws {
    let place = Place(path: "a/é", depth: 2)

    #expect(String(decoding: try place.jsonBytes(), as: UTF8.self) == #"{"depth":2,"path":"a/é"}"#)
    #expect(try Place(decodingJSON: place.jsonBytes(isPretty: true)) == place)
    #expect(try Place?(decodingJSON: "null".utf8) == nil)
  }

  @Test("Without a bound, the errors are those of the type; with one, too many values are refused")
  func bound() throws {
    let text = #"{"path":"a","more":[1,2]}"#

    #expect(try Place(decodingJSON: text.utf8, valuesMax: 5) == Place(path: "a"))
    let error = #expect(throws: JSONSyntaxError.self) {
      try Place(decodingJSON: text.utf8, valuesMax: 4)
    }
    #expect(error?.reason == "a value beyond the 4 that it may have")
    #expect(throws: DecodingError.self) { try Place(decodingJSON: "{}".utf8, valuesMax: 4) }
    #expect(throws: DecodingError.self) { try Place(decodingJSON: "{".utf8) }
  }
}
