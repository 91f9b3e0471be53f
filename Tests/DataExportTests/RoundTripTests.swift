import DataExport
import DocumentModel
import DocumentStore
import Foundation
import StatusCodes
import Testing
import TestSupport
import VectorIndex

@Suite("Export and import")
struct RoundTripTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test("Every value and id comes back as it was, with its times")
  func everyValue() async throws {
    let first = Fixture()
    try await first.write(samples)
    let exported = try await first.exporter.exportAll(
      of: "p",
      to: folder.path("a"),
      replaces: false
    )
    let second = Fixture()
    let imported = try await second.importer.import(folder.path("a"), .init())

    #expect(exported.documents == samples.count && imported.documents == samples.count)
    #expect(imported.changedDocuments == samples.count)
    let documents = try await first.documents()
    #expect(documents.count == samples.count)
    #expect(try await second.documents() == documents)
    #expect(try await second.eventsCount() == 0)
    #expect(try await DataImporter.unfinished(in: second.storage).isEmpty)
  }

  @Test("An import's own export has the same lines", arguments: 0..<4)
  func property(round: Int) async throws {
    var generator = SeededGenerator.forTest()
    for _ in 0..<round { _ = generator.next() }
    let first = Fixture()
    for batch in 0..<5 {
      let documents = (0..<20).map { number in
        let collection = ["c", "c/x/s", "d"].randomElement(using: &generator) ?? "c"
        return document(
          "\(collection)/\(batch)-\(number)",
          ["v": randomValue(depth: 0, &generator), "w": randomValue(depth: 0, &generator)]
        )
      }
      try await first.write(documents)
    }
    try await addVectors(to: first, &generator)
    _ = try await first.exporter.exportAll(of: "p", to: folder.path("a"), replaces: false)
    let second = Fixture()
    _ = try await second.importer.import(folder.path("a"), .init())
    _ = try await second.exporter.exportAll(of: "p", to: folder.path("b"), replaces: false)

    let lines = try files(in: folder.path("a")).filter { $0.key.hasSuffix(".jsonl") }
    #expect(lines.count > 2)
    #expect(try files(in: folder.path("b")).filter { $0.key.hasSuffix(".jsonl") } == lines)
    #expect(try await second.documents() == first.documents())
    #expect(second.vectors.indexes() == first.vectors.indexes())
  }

  private func addVectors(to fixture: Fixture, _ generator: inout SeededGenerator) async throws {
    for name in ["ix", "iy"] {
      try await fixture.vectors.create(
        VectorIndexDescription(name: name, dimension: 3, metric: .euclidean, tags: ["a": "b"])
      )
      for namespace in ["", "n"] {
        let records = (0..<30).map { number in
          VectorRecord(
            id: "v\(number)",
            values: (0..<3).map { _ in Float.random(in: -1...1, using: &generator) },
            metadata: [
              "s": .string("1"), "n": .number(Double(number)), "one": .number(1),
              "b": .boolean(true),
              "l": .strings(["x", "é"]), "none": .strings([]),
            ]
          )
        }
        try await fixture.vectors.upsert(records, index: name, namespace: namespace)
      }
    }
  }

  @Test("An index comes back with all that was declared of it and its namespaces")
  func declarations() async throws {
    let first = Fixture()
    let index = VectorIndexDescription(
      name: "ix",
      dimension: 3,
      metric: .dotproduct,
      field: "embedding",
      cloud: "gcp",
      region: "europe-west4",
      tags: ["model": "words"],
      isProtected: true
    )
    try await first.vectors.create(index)
    try await first.vectors.createNamespace("bare", index: "ix", filterableFields: [])
    try await first.vectors.createNamespace(
      "full",
      index: "ix",
      filterableFields: ["chat", "year"]
    )
    let record = VectorRecord(id: "v", values: [1, 2, 3], metadata: ["chat": .string("c")])
    try await first.vectors.upsert([record], index: "ix", namespace: "full")
    _ = try await first.exporter.exportAll(of: "p", to: folder.path("a"), replaces: false)
    let second = Fixture()
    _ = try await second.importer.import(folder.path("a"), .init())
    // Importing over existing data duplicates nothing and loses nothing.
    _ = try await second.importer.import(folder.path("a"), .init())

    #expect(second.vectors.indexes() == [index])
    let namespaces = try await second.vectors.namespaces(index: "ix")
    #expect(try await first.vectors.namespaces(index: "ix") == namespaces)
    #expect(namespaces.map(\.filterableFields) == [[], ["chat", "year"]])
    #expect(namespaces.map(\.recordCount) == [0, 1])
    #expect(try await second.allVectors().map(\.record) == [record])

    let other = Fixture()
    try await other.vectors.create(.init(name: "ix", dimension: 3, metric: .dotproduct))
    let refusal = await failure { try await other.importer.import(folder.path("a"), .init()) }
    #expect(refusal?.statusCode == .failedPrecondition)
    _ = try await other.importer.import(folder.path("a"), .init(replaces: true))
    #expect(other.vectors.indexes() == [index])
  }

  @Test("An export of the first version, without fields and namespaces, is read as it was meant")
  func firstVersion() async throws {
    let first = Fixture()
    try await first.vectors.create(.init(name: "ix", dimension: 1, metric: .cosine))
    _ = try await first.exporter.exportAll(of: "p", to: folder.path("a"), replaces: false)
    let path = folder.path("a/vectors_export/vectors_export.overall_export_metadata")
    var metadata = try #require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: URL(filePath: path)))
        as? [String: Any]
    )
    metadata["version"] = 1
    var indexes = try #require(metadata["indexes"] as? [[String: Any]])
    for key in ["field", "cloud", "region", "namespaces"] { indexes[0][key] = nil }
    metadata["indexes"] = indexes
    try JSONSerialization.data(withJSONObject: metadata).write(to: URL(filePath: path))
    let second = Fixture()
    _ = try await second.importer.import(folder.path("a"), .init())

    #expect(second.vectors.indexes() == first.vectors.indexes())
  }

  @Test("The documents of one database are exported alone and imported from their own folder")
  func oneDatabase() async throws {
    let first = Fixture()
    try await first.write(samples)
    let summary = try await first.exporter.export(database, to: folder.path("a/firestore_export"))
    #expect(summary.path.hasSuffix("/a/firestore_export") && summary.documents == samples.count)

    let second = Fixture()
    _ = try await second.importer.import(folder.path("a/firestore_export"), .init())
    #expect(try await second.documents() == first.documents())
  }

  @Test("Another project's documents become this project's, with their references")
  func otherProject() async throws {
    let first = Fixture()
    try await first.write(samples)
    _ = try await first.exporter.exportAll(of: "p", to: folder.path("a"), replaces: false)
    let second = Fixture(project: "q")
    _ = try await second.importer.import(folder.path("a"), .init())

    let moved = DatabaseName(project: "q")
    let documents = try await second.documents(moved)
    #expect(documents.count == samples.count)
    let types = try #require(documents.first { $0.name.path.description == "types/all" })
    guard case .reference(let name) = types.fields["reference"],
      case .reference(let elsewhere) = types.fields["elsewhere"]
    else { return #expect(Bool(false), "no references") }
    #expect(name.database == moved && elsewhere.database.project == "other")
  }

  @Test("Documents of the same name are replaced and others stay, unless `replace` is set")
  func mergeAndReplace() async throws {
    let first = Fixture()
    try await first.write([document("c/a", ["n": .integer(1)]), document("c/b")])
    try await first.vectors.create(.init(name: "ix", dimension: 1, metric: .cosine))
    _ = try await first.exporter.exportAll(of: "p", to: folder.path("a"), replaces: false)
    let second = Fixture()
    try await second.write([document("c/a", ["n": .integer(2)]), document("c/z")])
    try await second.vectors.create(.init(name: "old", dimension: 1, metric: .cosine))

    _ = try await second.importer.import(folder.path("a"), .init())
    #expect(try await second.documents().map(\.name.id) == ["a", "b", "z"])
    #expect(try await second.documents()[0] == first.documents()[0])
    #expect(second.vectors.indexes().map(\.name) == ["ix", "old"])

    _ = try await second.importer.import(folder.path("a"), .init(replaces: true))
    #expect(try await second.documents() == first.documents())
    #expect(second.vectors.indexes().map(\.name) == ["ix"])
  }

  @Test("Only an import that fires triggers creates events, one for each difference")
  func events() async throws {
    let first = Fixture()
    try await first.write([document("c/a"), document("c/b")])
    _ = try await first.exporter.exportAll(of: "p", to: folder.path("a"), replaces: false)
    let second = Fixture()
    _ = try await second.importer.import(folder.path("a"), .init(firesTriggers: true))
    #expect(try await second.eventsCount() == 2)
    #expect(try await second.documents() == first.documents())
    _ = try await second.importer.import(folder.path("a"), .init(firesTriggers: true))
    #expect(try await second.eventsCount() == 2)
  }

  @Test("An empty store has an export, too")
  func empty() async throws {
    let summary = try await Fixture().exporter.exportAll(
      of: "p",
      to: folder.path("a"),
      replaces: false
    )
    #expect(summary.documents == 0 && summary.vectors == 0)
    let imported = try await Fixture().importer.import(folder.path("a"), .init())
    #expect(imported.documents == 0)
  }

  private func randomValue(depth: Int, _ generator: inout SeededGenerator) -> FirestoreValue {
    switch Int.random(in: 0..<(depth < 4 ? 11 : 8), using: &generator) {
    case 0: .null
    case 1: .boolean(.random(using: &generator))
    case 2: .integer(Int64(bitPattern: generator.next()))
    case 3: .double(Double(bitPattern: generator.next()))
    case 4:
      .timestamp(
        Timestamp(
          microseconds: Int64.random(in: -1_000_000_000...1_000_000_000_000_000, using: &generator)
        )
      )
    case 5: .string(randomText(&generator))
    case 6:
      .bytes(
        (0..<Int.random(in: 0..<9, using: &generator)).map { _ in
          UInt8.random(in: 0...255, using: &generator)
        }
      )
    case 7: .vector((0..<3).map { _ in randomComponent(&generator) })
    case 8, 9:
      .map(
        MapValue(
          (0..<3).map {
            ("k\($0)" + randomText(&generator), randomValue(depth: depth + 1, &generator))
          }
        )
      )
    default: .array((0..<2).map { .map(["e\($0)": randomValue(depth: depth + 2, &generator)]) })
    }
  }

  /// Returns any double except NaN, which a vector may not contain.
  private func randomComponent(_ generator: inout SeededGenerator) -> Double {
    let component = Double(bitPattern: generator.next())
    return component.isNaN ? .infinity : component
  }

  private func randomText(_ generator: inout SeededGenerator) -> String {
    let alphabet: [Character] = [
      "a", "\"", "\\", "\n", "é", "\u{1F600}", "\u{0}", "/", " ", "\u{FFFD}",
    ]
    return String(
      (0..<Int.random(in: 0..<6, using: &generator)).map { _ in
        alphabet.randomElement(using: &generator) ?? "a"
      }
    )
  }
}
