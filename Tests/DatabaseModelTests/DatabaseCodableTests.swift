import DatabaseModel
import DocumentModel
import Foundation
import JSONText
import Testing

@Suite("Swift values in the Realtime Database")
struct DatabaseCodableTests {
  struct Room: Codable, Equatable {
    var name: String
    var isOpen: Bool?
    var seats: [Int?] = []
    var guests: [String: Double] = [:]
    var since: Date?
    var until: Timestamp?
  }

  private func read<Value: Decodable>(_ json: String, as type: Value.Type) throws -> Value {
    try DatabaseInput(parsing: Array(json.utf8)).node.decode(type)
  }

  @Test("A value is written as JSON and read from the node that the server makes of it")
  func roundTrip() throws {
    let room = Room(
      name: "a",
      isOpen: true,
      seats: [1, 2],
      guests: ["0": 1.5, "1": 2, "ann": 3],
      since: Date(timeIntervalSince1970: 1_800_000_000.25),
      until: Timestamp(microseconds: 1_800_000_000_750_000)
    )
    let json = try JSONValue(writing: room).bytes
    let node = try DatabaseInput(parsing: json).node

    #expect(node["since"].leaf == .number(1_800_000_000_250))
    #expect(node["until"].leaf == .number(1_800_000_000_750))
    #expect(node["seats"]["1"].leaf == .number(2))
    #expect(try node.decode(Room.self) == room)
  }

  @Test("A list is read from indices, with null for what is missing, if more than half are there")
  func lists() throws {
    #expect(try read(#"{"0":"a","2":"c"}"#, as: [String?].self) == ["a", nil, "c"])
    #expect(try read(#"["a","b"]"#, as: [String: String].self) == ["0": "a", "1": "b"])
    #expect(throws: ValueCodingError.self) { try read(#"{"4":"e"}"#, as: [String?].self) }
    #expect(throws: ValueCodingError.self) { try read(#"{"00":"e"}"#, as: [String?].self) }
    #expect(throws: ValueCodingError.self) { try read(#"{"a":"e"}"#, as: [String?].self) }
  }

  @Test("A value of another type is an error that names its path")
  func wrongType() {
    let error = #expect(throws: ValueCodingError.self) {
      try read(#"{"name":"a","seats":{},"guests":{"ann":"x"}}"#, as: Room.self)
    }
    #expect(error?.path == "seats" || error?.path == "guests.ann")
  }

  @Test("A node that does not exist is nil")
  func absent() throws {
    #expect(try read("null", as: Int?.self) == nil)
    #expect(throws: ValueCodingError.self) { try read("null", as: Int.self) }
  }
}
