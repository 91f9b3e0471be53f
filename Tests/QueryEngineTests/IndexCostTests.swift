import DocumentModel
import Events
import QueryEngine
import QueryModel
import StorageEngine
import Testing

@Suite("Which automatic indexes there are")
struct IndexCostTests {
  /// A fixture in which an index costs three candidates for each document.
  ///
  /// The engine considers an index after 100 wasted candidates.
  private static func fixture(collectionIndexesMax: Int = 32) async throws -> QueryFixture {
    let fixture = try await QueryFixture(
      .init(collectionIndexesMax: collectionIndexesMax, wastedCandidatesMax: 100),
      indexCost: 3
    )
    try await IndexTests.fill(fixture, 200)
    return fixture
  }

  @Test("Shapes that are asked once have no indexes, and commits write no entries for them")
  func oneOffShapes() async throws {
    let fixture = try await Self.fixture()
    for number in 0..<47 {
      let query = Query.c(
        .field("f\(number % 10)", .equal, .integer(5)),
        orders: [.by("g\(number)")],
        limit: 10
      )
      #expect(try await fixture.run(query).statistics.scanned == 200)
      try await fixture.buildIndexes()
    }

    #expect(fixture.engine.indexes().isEmpty)
    var batch = StorageBatch()
    let changed = try #require(fixture.model.values.first)
    fixture.engine.indexMaintainer.append(
      DocumentChange(name: changed.name, before: nil, after: changed),
      to: &batch
    )
    #expect(batch.operations.isEmpty)
  }

  @Test("A shape gets its index when it has cost more than the index, whatever its values")
  func repeatedShape() async throws {
    let fixture = try await Self.fixture()
    for number in 0..<4 {
      try await fixture.buildIndexes()
      #expect(fixture.engine.indexes().isEmpty, "after \(number) queries")
      _ = try await fixture.run(.c(.field("b", .equal, .integer(Int64(number)))))
    }
    try await fixture.buildIndexes()

    #expect(fixture.engine.indexes().map(\.definition.description) == ["c: b ↑"])
    #expect(try await fixture.run(.c(.field("b", .equal, .integer(9)))).statistics.scanned == 1)
  }

  @Test("What an index costs is counted in all collections of its id")
  func manyCollections() async throws {
    let fixture = try await Self.fixture()
    for parent in 0..<10 {
      try await fixture.write(
        (0..<200).map { ("d/\(parent)/c/\($0)", ["b": .integer(Int64($0))]) }
      )
    }
    // 2200 documents cost 6600 candidates; each query wastes 199.
    for _ in 0..<33 {
      _ = try await fixture.run(.c(.field("b", .equal, .integer(7))))
      try await fixture.buildIndexes()
    }
    #expect(fixture.engine.indexes().isEmpty)
    for _ in 33..<42 {
      _ = try await fixture.run(.c(.field("b", .equal, .integer(7))))
      try await fixture.buildIndexes()
    }
    #expect(fixture.engine.indexes().map(\.definition.description) == ["c: b ↑"])
  }

  @Test("Past the bound of a collection, the index that was used longest ago goes")
  func leastRecentlyUsed() async throws {
    let fixture = try await Self.fixture(collectionIndexesMax: 2)
    func ask(_ field: String) async throws {
      for _ in 0..<6 { _ = try await fixture.run(.c(.field(field, .equal, .integer(-1)))) }
      try await fixture.buildIndexes()
    }
    try await ask("b")
    try await ask("x")
    try await ask("b")
    try await ask("y")

    #expect(fixture.engine.indexes().map(\.definition.description) == ["c: b ↑", "c: y ↑"])
    try await RandomQueryTests.expectEntriesMatchDocuments(fixture)
  }

  @Test("An index that the project declares is built by its first query in need of it")
  func declared() async throws {
    let fixture = try await Self.fixture()
    fixture.engine.declare(
      DeclaredIndexes(composites: [
        CompositeIndex(
          collectionID: "c",
          scope: .collection,
          fields: [.init(FieldPath(["a"]), .ascending), .init(FieldPath(["b"]), .ascending)]
        )
      ])
    )
    let query = Query.c(.field("a", .equal, .integer(1)), orders: [.by("b")], limit: 3)
    _ = try await fixture.run(query)
    _ = try await fixture.run(.c(.field("b", .equal, .integer(3))))
    try await fixture.buildIndexes()

    #expect(fixture.engine.indexes().map(\.definition.description) == ["c: a ↑, b ↑"])
    #expect(try await fixture.run(query).statistics.scanned == 3)
  }
}
