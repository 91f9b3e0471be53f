import StatusCodes
import StorageEngine
import Testing
import TestSupport
import VectorIndex

@Suite("Vector calls that overtake each other")
struct VectorRaceTests {
  private let storage = FaultyStorage()
  private let catalog: VectorCatalog

  init() {
    catalog = VectorCatalog(storage: storage)
  }

  private func create(_ dimension: Int) async throws {
    try await catalog.create(
      VectorIndexDescription(name: "ix", dimension: dimension, metric: .cosine)
    )
  }

  private func upsert(_ id: String, _ values: [Float], genre: String = "a") async throws {
    let record = VectorRecord(id: id, values: values, metadata: ["genre": .string(genre)])
    try await catalog.upsert([record], index: "ix", namespace: "")
  }

  private func storedRows() async throws -> Int {
    try await storage.read { snapshot in
      var rows = 0
      try snapshot.scanKeys(Keyspace("vectors"), from: nil, to: nil, descending: false) { _, _ in
        rows += 1
        return true
      }
      return rows
    }
  }

  private func reopened() async throws -> VectorCatalog {
    let catalog = VectorCatalog(storage: storage)
    try await catalog.loadIndexes()
    #expect(try await catalog.loadRecords() == 0)
    return catalog
  }

  // upsert               | delete, create
  // ---------------------+---------------------------
  // finds 2 dimensions   |
  //                      | the index has 3 dimensions
  // commits 2 values     |
  @Test("An upsert does not reach an index that was created anew with another dimension")
  func upsertIntoAnother() async throws {
    try await create(2)
    storage.overtakeNextCommit { [catalog] in
      try await catalog.delete("ix")
      try await catalog.create(
        VectorIndexDescription(name: "ix", dimension: 3, metric: .cosine)
      )
    }

    await #expect(throws: StatusError.self) { try await upsert("a", [1, 2]) }
    try await upsert("b", [1, 2, 3])
    for catalog in [catalog, try await reopened()] {
      let found = try await catalog.query([1, 1, 1], limit: 9, index: "ix", namespace: "")
      #expect(found.map(\.record.id) == ["b"])
    }
  }

  @Test("An upsert into an index that was deleted leaves nothing")
  func upsertIntoDeleted() async throws {
    try await create(2)
    storage.overtakeNextCommit { [catalog] in try await catalog.delete("ix") }

    await #expect(throws: StatusError.self) { try await upsert("a", [1, 2]) }
    #expect(catalog.memoryBytes == 0)
    #expect(try await storedRows() == 0)
  }

  @Test("Configuring an index does not bring it back after its deletion")
  func configureDeleted() async throws {
    try await create(2)
    storage.overtakeNextCommit { [catalog] in try await catalog.delete("ix") }

    await #expect(throws: StatusError.self) {
      try await catalog.configure("ix", tags: ["model": "m"], isProtected: nil)
    }
    #expect(try await reopened().indexes().isEmpty)
  }

  @Test("Both of two changes of an index's tags take effect")
  func configureTwice() async throws {
    try await create(2)
    storage.overtakeNextCommit { [catalog] in
      _ = try await catalog.configure("ix", tags: ["a": "1"], isProtected: nil)
    }

    let changed = try await catalog.configure("ix", tags: ["b": "2"], isProtected: nil)
    #expect(changed.tags == ["a": "1", "b": "2"])
    #expect(try await reopened().describe("ix") == changed)
  }

  @Test("An index that becomes protected in time keeps all its records")
  func protectedInTime() async throws {
    try await create(2)
    try await upsert("a", [1, 2])
    storage.overtakeNextCommit { [catalog] in
      _ = try await catalog.configure("ix", tags: nil, isProtected: true)
    }

    await #expect(throws: StatusError.self) { try await catalog.delete("ix") }
    for catalog in [catalog, try await reopened()] {
      #expect(try await catalog.fetch(["a"], index: "ix", namespace: "").count == 1)
    }
  }

  @Test("A removal or an update by filter leaves a record that no longer matches")
  func changedMetadata() async throws {
    try await create(2)
    try await upsert("a", [1, 2])
    let filter = MetadataFilter.equal("genre", .string("a"))
    let overtake: @Sendable () async throws -> Void = { [catalog] in
      let record = VectorRecord(id: "a", values: [1, 2], metadata: ["genre": .string("b")])
      try await catalog.upsert([record], index: "ix", namespace: "")
    }

    storage.overtakeNextCommit(overtake)
    #expect(try await catalog.remove(matching: filter, index: "ix", namespace: "") == 0)
    try await upsert("a", [1, 2])
    storage.overtakeNextCommit(overtake)
    let updated = try await catalog.update(
      ["a"],
      matching: filter,
      index: "ix",
      namespace: ""
    ) { $0.metadata = [:] }
    #expect(updated == 0)
    #expect(try await catalog.fetch(["a"], index: "ix", namespace: "").count == 1)
  }

  @Test("A namespace keeps its declared fields when its first record was on the way already")
  func declaredFields() async throws {
    try await create(2)
    storage.overtakeNextCommit { [catalog] in
      try await catalog.createNamespace("", index: "ix", filterableFields: ["genre"])
    }
    try await upsert("a", [1, 2])

    for catalog in [catalog, try await reopened()] {
      #expect(try await catalog.namespaces(index: "ix").map(\.filterableFields) == [["genre"]])
    }
  }

  @Test("A namespace that is deleted while a record is written into it is there after a restart")
  func namespaceDeleted() async throws {
    try await create(2)
    try await upsert("a", [1, 2])
    storage.overtakeNextCommit { [catalog] in
      try await catalog.deleteNamespace("", index: "ix")
    }
    try await upsert("b", [1, 2])
    try await catalog.remove(["b"], index: "ix", namespace: "")

    for catalog in [catalog, try await reopened()] {
      #expect(try await catalog.namespaces(index: "ix").map(\.recordCount) == [0])
    }
  }

  @Test("The bound on memory counts records on the way, and the metadata that an update adds")
  func memory() async throws {
    let catalog = VectorCatalog(storage: storage, bytesMax: 3000)
    try await catalog.create(
      VectorIndexDescription(name: "ix", dimension: 400, metric: .cosine)
    )
    let values = [Float](repeating: 1, count: 400)
    storage.overtakeNextCommit {
      await #expect(throws: StatusError.self) {
        try await catalog.upsert(
          [VectorRecord(id: "b", values: values)],
          index: "ix",
          namespace: ""
        )
      }
    }

    try await catalog.upsert([VectorRecord(id: "a", values: values)], index: "ix", namespace: "")
    for (length, fits) in [(2000, false), (100, true)] {
      let updated = try? await catalog.update(["a"], index: "ix", namespace: "") {
        $0.metadata["text"] = .string(String(repeating: "x", count: length))
      }
      #expect((updated == 1) == fits)
    }
  }

  @Test("Stored records that fit no index are dropped, for good, and the others are there")
  func misfits() async throws {
    let stray = MemoryStorage()
    let other = VectorCatalog(storage: stray)
    for name in ["ix", "gone"] {
      try await other.create(VectorIndexDescription(name: name, dimension: 3, metric: .cosine))
      let record = VectorRecord(id: "long", values: [1, 2, 3])
      try await other.upsert([record], index: name, namespace: "")
    }
    try await create(2)
    try await upsert("a", [1, 2])
    var batch = StorageBatch()
    for (key, value) in try await stray.read({ snapshot in
      var rows: [([UInt8], [UInt8])] = []
      try snapshot.scan(Keyspace("vectors"), prefix: []) { key, value in
        rows.append((key, value.bytes))
        return true
      }
      return rows
    }) { batch.put(Keyspace("vectors"), key, value) }
    try await storage.commit(batch)

    let first = VectorCatalog(storage: storage)
    try await first.loadIndexes()
    #expect(try await first.loadRecords() == 2)
    for catalog in [first, try await reopened()] {
      let found = try await catalog.query([1, 1], limit: 9, index: "ix", namespace: "")
      #expect(found.map(\.record.id) == ["a"])
    }
    #expect(try await storedRows() == 1)
  }

  // export            | upsert
  // ------------------+------------------------
  //                   | submits its commit
  // waits             |
  //                   | the commit is visible
  // takes the view    |
  //                   | another upsert waits
  // opens the storage |
  @Test("A view of the vectors and one of the storage within it show the same records")
  func views() async throws {
    try await create(2)
    for round in 0..<50 {
      async let first: Void = upsert("a\(round)", [1, 2])
      async let second: Void = upsert("b\(round)", [1, 2])
      async let views = catalog.withView { view in
        var ids = 0
        view.forEachRow { _ in ids += 1 }
        return (ids, try await storedRows())
      }
      let (shown, stored) = try await views
      #expect(shown == stored)
      try await first
      try await second
    }
    #expect(try await storedRows() == 100)
  }

  @Test("A view keeps its records, in order, while they are changed and their index is deleted")
  func viewStays() async throws {
    try await create(2)
    for id in ["b", "a", "c"] { try await upsert(id, [1, 2]) }
    try await catalog.createNamespace("z", index: "ix", filterableFields: ["genre"])

    let view = try await catalog.withView { $0 }
    try await upsert("a", [3, 4])
    try await catalog.remove(["b"], index: "ix", namespace: "")
    try await catalog.delete("ix")
    var rows: [VectorRow] = []
    view.forEachRow { rows.append($0) }
    #expect(rows.map(\.record.id) == ["a", "b", "c"])
    #expect(rows.map(\.record.values) == [[1, 2], [1, 2], [1, 2]])
    #expect(view.indexes.map(\.namespaces.count) == [2])
  }
}
