import RuntimeSupport
import StorageEngine
import TestSupport
import Testing
import VectorIndex

@Suite("Vector catalogue")
struct VectorCatalogueTests {
  private func catalogue(
    metric: VectorIndexDescription.Metric = .cosine,
    dimension: Int = 2,
    storage: MemoryStorage = MemoryStorage()
  ) async throws -> VectorCatalogue {
    let catalogue = VectorCatalogue(storage: storage)
    try await catalogue.create(
      VectorIndexDescription(name: "ix", dimension: dimension, metric: metric)
    )
    return catalogue
  }

  @Test(
    "Each metric ranks by its own measure, equal scores by id",
    arguments: [
      (VectorIndexDescription.Metric.cosine, ["long", "near", "far"]),
      (.dotproduct, ["long", "near", "far"]), (.euclidean, ["near", "far", "long"]),
    ]
  )
  func ranking(metric: VectorIndexDescription.Metric, expected: [String]) async throws {
    let catalogue = try await catalogue(metric: metric)
    try await catalogue.upsert(
      [
        VectorRecord(id: "near", values: [1, 0.1]), VectorRecord(id: "far", values: [0, 1]),
        VectorRecord(id: "long", values: [10, 0]),
      ],
      index: "ix",
      namespace: ""
    )

    let matches = try catalogue.query([1, 0], filter: nil, limit: 3, index: "ix", namespace: "")
    #expect(matches.map(\.record.id) == expected)
  }

  @Test("The search is exact over random vectors, removals and replacements")
  func exact() async throws {
    var generator = SeededGenerator.forTest()
    let catalogue = try await catalogue(metric: .dotproduct, dimension: 3)
    var model: [String: [Float]] = [:]
    for _ in 0..<1500 {
      let id = "v\(Int.random(in: 0..<700, using: &generator))"
      if model[id] != nil, Bool.random(using: &generator) {
        try await catalogue.remove([id], index: "ix", namespace: "")
        model[id] = nil
      } else {
        let values = (0..<3).map { _ in Float(Int.random(in: 1...1000, using: &generator)) }
        try await catalogue.upsert(
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
    let found = try catalogue.query(query, filter: nil, limit: 20, index: "ix", namespace: "")
    #expect(found.map(\.record.id) == expected.map(\.id))
    #expect(try catalogue.counts(index: "ix") == ["": model.count])
  }

  @Test("What was acknowledged is there after the storage is opened again")
  func persistence() async throws {
    let storage = MemoryStorage()
    let first = try await catalogue(storage: storage)
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

    let second = VectorCatalogue(storage: storage)
    try await second.load()
    #expect(try second.fetch(["a", "b"], index: "ix", namespace: "n") == [record])
  }

  @Test("A record of another dimension, of zeros or of no number is refused and nothing is stored")
  func badRecords() async throws {
    let catalogue = try await catalogue()
    let good = VectorRecord(id: "good", values: [1, 1])
    for bad: [Float] in [[1], [0, 0], [.nan, 1]] {
      await #expect(throws: StatusError.self) {
        try await catalogue.upsert(
          [good, VectorRecord(id: "bad", values: bad)],
          index: "ix",
          namespace: ""
        )
      }
    }

    #expect(try catalogue.counts(index: "ix").isEmpty)
  }

  @Test("An index is created once, protected from deletion, and gone with its records when deleted")
  func lifecycle() async throws {
    let catalogue = try await catalogue()
    try await catalogue.upsert(
      [VectorRecord(id: "a", values: [1, 1])],
      index: "ix",
      namespace: ""
    )
    await #expect(throws: StatusError.self) {
      try await catalogue.create(
        VectorIndexDescription(name: "ix", dimension: 2, metric: .cosine)
      )
    }
    _ = try await catalogue.configure("ix", tags: ["model": "m"], isProtected: true)
    await #expect(throws: StatusError.self) { try await catalogue.delete("ix") }

    _ = try await catalogue.configure("ix", tags: nil, isProtected: false)
    try await catalogue.delete("ix")
    try await catalogue.create(VectorIndexDescription(name: "ix", dimension: 2, metric: .cosine))
    #expect(try catalogue.fetch(["a"], index: "ix", namespace: "").isEmpty)
  }
}
