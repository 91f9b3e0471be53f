import DataExport
import DocumentModel
import Foundation
import StatusCodes
import TestSupport
import Testing

@Suite("Seed data written by hand")
struct SeedFileTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func seed(_ text: String) throws -> String {
    let path = folder.path("seed.json")
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  @Test("Documents by their paths or in collections are imported with every kind of value")
  func everyValue() async throws {
    let path = try seed(
      """
      {
        "users/tina": {
          "name": "Tina", "age": 36, "height": 1.7, "isTrainer": true, "left": null,
          "born": {"$timestamp": "1990-04-01T00:00:00Z"}, "photo": {"$bytes": "aGk="},
          "gym": {"$reference": "gyms/north"}, "home": {"$geopoint": [52.5, 13.4]},
          "score": {"$double": 3}, "embedding": {"$vector": [0.5, 1]},
          "tags": ["a", {"$double": "NaN"}], "address": {"city": "Berlin", "$zone": 1}
        },
        "users/tina/notes": {"n1": {"text": "Hello"}, "n2": {}},
        "gyms": {"north": {}}
      }
      """
    )
    let fixture = Fixture()
    let summary = try await fixture.importer.import(path, .init())
    let documents = try await fixture.documents()

    #expect(summary.documents == 4 && summary.changedDocuments == 4)
    #expect(
      documents.map { "\($0.name.path)" }
        == ["gyms/north", "users/tina", "users/tina/notes/n1", "users/tina/notes/n2"]
    )
    let tina = try #require(documents.first { $0.name.path.description == "users/tina" }).fields
    #expect(tina["age"] == .integer(36) && tina["height"] == .double(1.7))
    #expect(tina["left"] == .null && tina["isTrainer"] == .boolean(true))
    #expect(tina["born"] == Timestamp("1990-04-01T00:00:00Z").map(FirestoreValue.timestamp))
    #expect(tina["photo"] == .bytes(Array("hi".utf8)))
    let gym = DocumentName(database: database, path: ResourcePath(["gyms", "north"]))
    #expect(tina["gym"] == .reference(gym))
    #expect(tina["home"] == .geoPoint(GeoPoint(latitude: 52.5, longitude: 13.4)))
    #expect(tina["score"] == .double(3) && tina["embedding"] == .vector([0.5, 1]))
    #expect(tina["address"] == .map(["city": .string("Berlin"), "$zone": .integer(1)]))
    #expect(try await fixture.eventsCount() == 0)
  }

  @Test("Triggers fire only when asked, and what is there stays unless it is to be replaced")
  func options() async throws {
    let path = try seed(#"{"a/1": {"n": 1}, "a/2": {}}"#)
    let fixture = Fixture()
    try await fixture.write([document("a/3", [:])])
    let before = try await fixture.eventsCount()
    _ = try await fixture.importer.import(path, .init(firesTriggers: true))
    #expect(try await fixture.eventsCount() > before)
    #expect(try await fixture.documents().count == 3)

    _ = try await fixture.importer.import(path, .init(replaces: true))
    #expect(try await fixture.documents().count == 2)
  }

  @Test(
    "A mistake is named with its place, and nothing is written",
    arguments: [
      (#"{"a/1": {"n": 1,}}"#, "the file is not JSON: line 1, column 17"),
      ("[]", "the file must be an object with documents by their paths"),
      (#"{"a/1": 7}"#, "a/1 must be an object of its fields, and is a number"),
      (#"{"a": {"1": []}}"#, "a/1 must be an object of its fields, and is a list"),
      (#"{"a": "x"}"#, "a must be an object of its documents, and is a text"),
      (#"{"/a/1": {}}"#, #""/a/1" is no path"#), (#"{"a//1": {}}"#, #""a//1" is no path"#),
      (#"{"": {}}"#, #""" is no path"#),
      (#"{"a/1": {}, "a": {"1": {}}}"#, "the document a/1 is there twice"),
      (#"{"a/1": {"t": {"$timestamp": "today"}}}"#, "a/1: t must be written as {\"$timestamp\""),
      (#"{"a/1": {"t": {"$timestamp": 5}}}"#, "a/1: t must be written as {\"$timestamp\""),
      (#"{"a/1": {"b": {"$bytes": "?"}}}"#, "a/1: b must be written as {\"$bytes\""),
      (#"{"a/1": {"r": {"$reference": "users"}}}"#, "a/1: r must be written as {\"$reference\""),
      (#"{"a/1": {"g": {"$geopoint": [91, 0]}}}"#, "a/1: g must be written as {\"$geopoint\""),
      (#"{"a/1": {"d": {"$double": "x"}}}"#, "a/1: d must be written as {\"$double\""),
      (#"{"a/1": {"v": {"$vector": ["x"]}}}"#, "a/1: v must be written as {\"$vector\""),
      (#"{"a/1": {"m": {"x": {"$date": 1}}}}"#, #"a/1: m: x has "$date", which is none of"#),
      (#"{"a/1": {"l": [1, [2]]}}"#, "a/1: l[1] is a list in a list"),
      (#"{"a/1": {"n": 18446744073709551615}}"#, "a/1: n does not fit in 64 bits"),
      (#"{"a/1": {"__n__": 1}}"#, #"a/1 has a field "__n__""#),
      (#"{"a/1": {"n": 1, "n": 2}}"#, #"a/1 has "n" twice"#),
    ]
  )
  func mistakes(text: String, message: String) async throws {
    let path = try seed(text)
    let fixture = Fixture()
    let error = await #expect(throws: StatusError.self) {
      try await fixture.importer.import(path, .init(replaces: true))
    }

    #expect(error?.statusMessage.hasPrefix("\(path): ") == true)
    #expect(error?.statusMessage.contains(message) == true, "\(error?.statusMessage ?? "")")
    #expect(try await fixture.documents().isEmpty)
    #expect(try await DataImporter.unfinished(in: fixture.storage).isEmpty)
  }
}
