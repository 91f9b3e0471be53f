import DocumentModel
import Foundation
import Testing

@Suite("Lenient")
struct LenientTests {
  private struct Item: Codable, Equatable {
    var name: String
  }

  private struct Order: Decodable {
    var note: Lenient<String>?
    var items: [Lenient<Item>]
  }

  private enum Role: String, Codable { case trainer, client }

  @Test("A document that fits is the value, and any other says where it does not")
  func document() throws {
    func read(_ fields: MapValue) throws -> Lenient<Item> {
      try ValueDecoder().decode(from: fields)
    }
    #expect(try read(["name": .string("A")]).get() == Item(name: "A"))
    #expect(try read(["name": .string("A")]).error == nil)
    let unreadable = try read(["name": .integer(7)])
    #expect(unreadable.value == nil)
    #expect(unreadable.error?.description == "'name' is an integer, not a string")
    #expect(throws: ValueCodingError(path: "name", reason: "is missing")) {
      try read([:]).get()
    }
  }

  @Test("An element that does not fit leaves the others, and its path has its index")
  func elements() throws {
    let order: Order = try ValueDecoder().decode(from: [
      "note": .boolean(true),
      "items": .array([
        .map(["name": .string("A")]), .string("B"), .map(["name": .null]), .null,
        .map(["name": .string("C")]),
      ]),
    ])
    #expect(order.items.map(\.value?.name) == ["A", nil, nil, nil, "C"])
    #expect(
      order.items.compactMap(\.error?.path) == ["items[1]", "items[2].name", "items[3]"]
    )
    #expect(order.note?.error?.path == "note")
  }

  @Test(
    "A missing field and a null one are no value, not a malformed one",
    arguments: [false, true]
  )
  func absent(isNull: Bool) throws {
    var fields: MapValue = ["items": .array([])]
    if isNull { fields["note"] = .null }
    let order: Order = try ValueDecoder().decode(from: fields)
    #expect(order.note == nil)
  }

  @Test("Firestore's own types, enumerations and errors of a type's own are kept as reasons")
  func kinds() throws {
    struct Picky: Decodable {
      struct Refusal: Error {}
      init(from decoder: any Decoder) throws { throw Refusal() }
    }
    func read<T: Decodable>(_ type: T.Type, _ value: FirestoreValue) throws -> Lenient<T> {
      try ValueDecoder().decode(Lenient<T>.self, from: value)
    }
    let time = Timestamp(microseconds: 7)
    #expect(try read(Timestamp.self, .timestamp(time)).value == time)
    #expect(try read(Timestamp.self, .string("today")).error != nil)
    #expect(try read(Role.self, .string("client")).value == .client)
    #expect(try read(Role.self, .string("coach")).error != nil)
    #expect(try read(Picky.self, .integer(1)).error?.reason.contains("Refusal") == true)
  }

  @Test("JSON is read in the same way")
  func json() throws {
    let read = try JSONDecoder().decode(
      [Lenient<Item>].self,
      from: Data(#"[{"name": "A"}, {"name": 7}]"#.utf8)
    )
    #expect(read[0].value == Item(name: "A"))
    #expect(read[1].error?.path == "[1].name")
  }
}
