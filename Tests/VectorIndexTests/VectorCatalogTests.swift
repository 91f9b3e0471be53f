import StatusCodes
import StorageEngine
import Testing
import TestSupport
import VectorIndex

@Suite("Vector catalog")
struct VectorCatalogTests {
  private func catalog(
    metric: VectorIndexDescription.Metric = .cosine,
    dimension: Int = 2,
    storage: MemoryStorage = MemoryStorage()
  ) async throws -> VectorCatalog {
    let catalog = VectorCatalog(storage: storage)
    try await catalog.create(
      VectorIndexDescription(name: "ix", dimension: dimension, metric: metric)
    )
    return catalog
  }

  @Test(
    "Each metric ranks by its own measure, equal scores by id",
    arguments: [
      (VectorIndexDescription.Metric.cosine, ["long", "near", "far"]),
      (.dotproduct, ["long", "near", "far"]), (.euclidean, ["near", "far", "long"]),
    ]
  )
  func ranking(metric: VectorIndexDescription.Metric, expected: [String]) async throws {
    let catalog = try await catalog(metric: metric)
    try await catalog.upsert(
      [
        VectorRecord(id: "near", values: [1, 0.1]), VectorRecord(id: "far", values: [0, 1]),
        VectorRecord(id: "long", values: [10, 0]),
      ],
      index: "ix",
      namespace: ""
    )

    let matches = try await catalog.query(
      [1, 0],
      filter: nil,
      limit: 3,
      index: "ix",
      namespace: ""
    )
    #expect(matches.map(\.record.id) == expected)
  }

  @Test("The search is exact over random vectors, removals and replacements")
  func exact() async throws {
    var generator = SeededGenerator.forTest()
    let catalog = try await catalog(metric: .dotproduct, dimension: 3)
    var model: [String: [Float]] = [:]
    for _ in 0..<1500 {
      let id = "v\(Int.random(in: 0..<700, using: &generator))"
      if model[id] != nil, Bool.random(using: &generator) {
        try await catalog.remove([id], index: "ix", namespace: "")
        model[id] = nil
      } else {
        let values = (0..<3).map { _ in Float(Int.random(in: 1...1000, using: &generator)) }
        try await catalog.upsert(
          [VectorRecord(id: id, values: values)],
          index: "ix",
          namespace: ""
        )
        model[id] = values
      }
    }

    let query: [Float] = [1, 2, 3]
    let scored = model.map { id, values -> (id: String, score: Float) in
      (id, values[0] + 2 * values[1] + 3 * values[2])
    }
    let expected = scored.sorted {
      $0.score == $1.score ? $0.id < $1.id : $0.score > $1.score
    }.prefix(20)
    let found = try await catalog.query(query, filter: nil, limit: 20, index: "ix", namespace: "")
    #expect(found.map(\.record.id) == expected.map(\.id))
    #expect(try await catalog.namespaces(index: "ix").map(\.recordCount) == [model.count])
  }

  @Test("What was acknowledged is there after the storage is opened again")
  func persistence() async throws {
    let storage = MemoryStorage()
    let first = try await catalog(storage: storage)
    let record = VectorRecord(
      id: "a",
      values: [0.25, -3],
      metadata: [
        "text": .string("knee"), "n": .number(1.5), "group": .boolean(true),
        "members": .strings(["u1", "u2"]),
      ]
    )
    try await first.upsert([record], index: "ix", namespace: "n")
    try await first.upsert(
      [VectorRecord(id: "b", values: [1, 1])],
      index: "ix",
      namespace: "n"
    )
    try await first.remove(["b"], index: "ix", namespace: "n")

    let second = VectorCatalog(storage: storage)
    try await second.loadIndexes()
    _ = try await second.loadRecords()
    #expect(try await second.fetch(["a", "b"], index: "ix", namespace: "n") == [record])
  }

  @Test("A record of another dimension, of zeros or of no number is refused and nothing is stored")
  func badRecords() async throws {
    let catalog = try await catalog()
    let good = VectorRecord(id: "good", values: [1, 1])
    for bad: [Float] in [[1], [0, 0], [.nan, 1]] {
      await #expect(throws: StatusError.self) {
        try await catalog.upsert(
          [good, VectorRecord(id: "bad", values: bad)],
          index: "ix",
          namespace: ""
        )
      }
    }

    #expect(try await catalog.namespaces(index: "ix").isEmpty)
  }

  @Test("An index is created once, protected from deletion, and gone with its records when deleted")
  func lifecycle() async throws {
    let catalog = try await catalog()
    try await catalog.upsert(
      [VectorRecord(id: "a", values: [1, 1])],
      index: "ix",
      namespace: ""
    )
    await #expect(throws: StatusError.self) {
      try await catalog.create(
        VectorIndexDescription(name: "ix", dimension: 2, metric: .cosine)
      )
    }
    _ = try await catalog.configure("ix", tags: ["model": "m"], isProtected: true)
    await #expect(throws: StatusError.self) { try await catalog.delete("ix") }

    _ = try await catalog.configure("ix", tags: nil, isProtected: false)
    try await catalog.delete("ix")
    try await catalog.create(VectorIndexDescription(name: "ix", dimension: 2, metric: .cosine))
    #expect(try await catalog.fetch(["a"], index: "ix", namespace: "").isEmpty)
  }

  @Test("Calls that need records wait for them; descriptions are there at once")
  func loading() async throws {
    let storage = MemoryStorage()
    let first = try await catalog(storage: storage)
    let record = VectorRecord(id: "a", values: [1, 2])
    try await first.upsert([record], index: "ix", namespace: "")

    let second = VectorCatalog(storage: storage)
    try await second.loadIndexes()
    async let fetched = second.fetch(["a"], index: "ix", namespace: "")
    async let written: Void = second.upsert(
      [VectorRecord(id: "b", values: [1, 1])],
      index: "ix",
      namespace: ""
    )
    #expect(second.indexes().map(\.name) == ["ix"])
    _ = try await second.loadRecords()
    #expect(try await fetched == [record])
    try await written
    #expect(try await second.namespaces(index: "ix").map(\.recordCount) == [2])
  }

  @Test("Calls that wait for records get the error of a load that fails")
  func failedLoading() async throws {
    let storage = MemoryStorage()
    let first = try await catalog(storage: storage)
    try await first.upsert([VectorRecord(id: "a", values: [1, 2])], index: "ix", namespace: "")
    let second = VectorCatalog(storage: storage)
    try await second.loadIndexes()
    try await storage.close()

    await #expect(throws: StorageError.self) { try await second.loadRecords() }
    await #expect(throws: StorageError.self) {
      try await second.fetch(["a"], index: "ix", namespace: "")
    }
  }

  @Test("A namespace stays when its records are deleted, also over a restart, until it is deleted")
  func namespaces() async throws {
    let storage = MemoryStorage()
    let first = try await catalog(storage: storage)
    try await first.createNamespace("made", index: "ix", filterableFields: ["genre"])
    try await first.upsert([VectorRecord(id: "a", values: [1, 2])], index: "ix", namespace: "n")
    try await first.removeAll(index: "ix", namespace: "n")
    await #expect(throws: StatusError.self) {
      try await first.createNamespace("n", index: "ix", filterableFields: [])
    }
    await #expect(throws: StatusError.self) {
      try await first.removeAll(index: "ix", namespace: "nobody")
    }

    let second = VectorCatalog(storage: storage)
    try await second.loadIndexes()
    _ = try await second.loadRecords()
    let found = try await second.namespaces(index: "ix")
    #expect(found.map(\.name) == ["made", "n"])
    #expect(found.map(\.filterableFields) == [["genre"], []])
    try await second.deleteNamespace("n", index: "ix")
    #expect(try await second.namespaces(index: "ix").map(\.name) == ["made"])
  }

  @Test("Updates at the same time all take effect, each on what the one before left")
  func concurrentUpdates() async throws {
    let catalog = try await catalog()
    let ids = (0..<300).map { "v\($0)" }
    try await catalog.upsert(
      ids.map { VectorRecord(id: $0, values: [1, 1]) },
      index: "ix",
      namespace: ""
    )

    let changed = try await withThrowingTaskGroup(of: Int.self) { group in
      for key in ["a", "b", "c"] {
        group.addTask {
          try await catalog.update(ids + ["nobody"], index: "ix", namespace: "") {
            $0.metadata[key] = .boolean(true)
          }
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(changed == [300, 300, 300])
    let records = try await catalog.fetch(ids, index: "ix", namespace: "")
    #expect(records.allSatisfy { $0.metadata.count == 3 })
  }

  @Test("Memory is counted, given back by deletions, and bounded")
  func memory() async throws {
    let catalog = VectorCatalog(storage: MemoryStorage(), bytesMax: 10_000)
    try await catalog.create(
      VectorIndexDescription(name: "ix", dimension: 100, metric: .cosine)
    )
    let records = (0..<8).map {
      VectorRecord(id: "v\($0)", values: Array(repeating: 1, count: 100))
    }
    try await catalog.upsert(records, index: "ix", namespace: "")
    #expect(catalog.memoryBytes >= 8 * 500)
    try await catalog.upsert(records, index: "ix", namespace: "other")

    await #expect(throws: StatusError.self) {
      try await catalog.upsert(records, index: "ix", namespace: "third")
    }
    try await catalog.delete("ix")
    #expect(catalog.memoryBytes == 0)
  }

  @Test("Ids are listed in bytewise order, from storage, by prefix and after one")
  func listing() async throws {
    let catalog = try await catalog()
    let ids = ["a", "a#1", "a#10", "a#2", "ab", "b", "~"]
    for namespace in ["", "n"] {
      try await catalog.upsert(
        ids.shuffled().map { VectorRecord(id: $0, values: [1, 1]) },
        index: "ix",
        namespace: namespace
      )
    }

    func list(_ prefix: String, after: String? = nil, limit: Int = 100) async throws -> [String] {
      try await catalog.list(
        prefix: prefix,
        after: after,
        limit: limit,
        index: "ix",
        namespace: ""
      )
    }
    #expect(try await list("") == ids)
    #expect(try await list("a#") == ["a#1", "a#10", "a#2"])
    #expect(try await list("a#", after: "a#1", limit: 1) == ["a#10"])
    #expect(try await list("b", after: "a") == ["b"])
    #expect(try await list("a", after: "zzz").isEmpty)
  }
}
