import Foundation
import Testing

@testable import PsstBackend

@Suite("Forms of arguments, derived from types")
struct JSONTypeTests {
  private enum Kind: String, JSONChoice {
    case call, training
  }

  private struct Place: Codable {
    var name: String
    var floor: Int?
  }

  private struct Input: Codable {
    var title: String
    var minutes: Int
    var price: Double
    var isUrgent: Bool
    var kind: Kind
    var other: Kind?
    var note: String?
    var tags: [String]
    var places: [Place]
  }

  @Test("Each property has its type, all are required, and optional ones may be null")
  func derived() throws {
    let type = try JSONType(of: Input.self, descriptions: ["title": "What it is about"])
    let expected = """
      {"additionalProperties":false,"properties":{"isUrgent":{"type":"boolean"},\
      "kind":{"enum":["call","training"],"type":"string"},"minutes":{"type":"integer"},\
      "note":{"type":["string","null"]},\
      "other":{"enum":["call","training",null],"type":["string","null"]},\
      "places":{"items":{"additionalProperties":false,"properties":{"floor":{"type":\
      ["integer","null"]},"name":{"type":"string"}},"required":["floor","name"],"type":"object"},\
      "type":"array"},"price":{"type":"number"},"tags":{"items":{"type":"string"},"type":"array"},\
      "title":{"description":"What it is about","type":"string"}},\
      "required":["isUrgent","kind","minutes","note","other","places","price","tags","title"],\
      "type":"object"}
      """
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    #expect(String(decoding: try encoder.encode(type), as: UTF8.self) == expected)
  }

  @Test("A type that decodes no object has no form of arguments")
  func noObject() {
    #expect(throws: DecodingError.self) { try JSONType(of: String.self) }
    #expect(throws: DecodingError.self) { try JSONType(of: [Int].self) }
  }
}
