import StorageEngine
import TestSupport
import Testing

@testable import VectorIndex

@Suite("Vector search")
struct VectorSearchTests {
  /// Returns the expected results of a search, computed from every row's score.
  private func expected(
    _ rows: [String: VectorRecord],
    _ query: [Float],
    _ metric: VectorIndexDescription.Metric,
    _ filter: MetadataFilter?,
    limit: Int
  ) -> [String] {
    let scorer = RowScorer(query, metric: metric)
    let scored = rows.values.filter { filter?.matches($0.metadata) ?? true }.map { record in
      var chunk = VectorChunk()
      chunk.append(record)
      let score = chunk.values.withUnsafeBufferPointer {
        scorer.score($0, place: 0, measure: chunk.measures[0])
      }
      return (id: record.id, score: metric.isDistance ? -score : score)
    }
    return scored.sorted { $0.score == $1.score ? $0.id < $1.id : $0.score > $1.score }
      .prefix(limit).map(\.id)
  }

  @Test(
    "Looking at rounded rows first finds what looking at all rows finds",
    arguments: VectorIndexDescription.Metric.allCases,
    [1, 3, 40]
  )
  func roundedRows(metric: VectorIndexDescription.Metric, dimension: Int) async {
    var generator = SeededGenerator.forTest()
    var matrix = VectorMatrix(dimension: dimension)
    var rows: [String: VectorRecord] = [:]
    // Clusters of vectors too close for rounding to separate, with lengths from small to large.
    let centres = (0..<20).map { _ in randomVector(dimension, &generator) }
    for number in 0..<3000 {
      let scale = Float.random(in: 0.01...30, using: &generator)
      let values = zip(centres[number % 20], randomVector(dimension, &generator)).map {
        ($0 + $1 * 0.001) * (number % 3 == 0 ? scale : 1)
      }
      let record = VectorRecord(id: "v\(number)", values: values)
      rows[record.id] = record
      matrix.upsert(record)
    }

    for query in [randomVector(dimension, &generator), centres[3]] {
      for limit in [1, 10, 300] {
        let found = await matrix.search(nil).nearest(
          to: query,
          metric: metric,
          limit: limit,
          withValues: false
        )
        #expect(found.map(\.record.id) == expected(rows, query, metric, nil, limit: limit))
      }
    }
  }

  @Test("A row's bounds hold its score, for rows and queries of any size")
  func bounds() {
    var generator = SeededGenerator.forTest()
    for dimension in [1, 2, 17, 1536] {
      for _ in 0..<50 {
        let size = Float(pow2: Int.random(in: -40...30, using: &generator))
        let query = randomVector(dimension, &generator).map { $0 * size }
        var chunk = VectorChunk()
        chunk.append(VectorRecord(id: "a", values: randomVector(dimension, &generator)))
        for metric in VectorIndexDescription.Metric.allCases {
          let scorer = RowScorer(query, metric: metric)
          let score = chunk.values.withUnsafeBufferPointer {
            scorer.score($0, place: 0, measure: chunk.measures[0])
          }
          let (lower, upper) = chunk.codes.withUnsafeBufferPointer {
            scorer.bounds($0, place: 0, measure: chunk.measures[0])
          }
          let value = metric.isDistance ? -score : score
          #expect(!(value < lower) && !(value > upper))
        }
      }
    }
  }

  @Test("Rows and queries at the ends of Float's range have their score, and spoil no other's")
  func extremes() async {
    var matrix = VectorMatrix(dimension: 2)
    let rows: [String: [Float]] = [
      "east": [1, 0], "hugeEast": [3e38, 0], "hugeNorth": [0, 3e38], "tinyEast": [1e-19, 0],
      "west": [-1, 0],
    ]
    for (id, values) in rows { matrix.upsert(VectorRecord(id: id, values: values)) }
    for query in [[1, 0], [3e38, 0], [1e-19, 0]] as [[Float]] {
      let found = await matrix.search(nil).nearest(
        to: query,
        metric: .cosine,
        limit: 5,
        withValues: false
      )
      let scores = Dictionary(uniqueKeysWithValues: found.map { ($0.record.id, $0.score) })
      #expect(
        scores == ["east": 1, "hugeEast": 1, "tinyEast": 1, "hugeNorth": 0, "west": -1]
      )
      for metric in VectorIndexDescription.Metric.allCases {
        let found = await matrix.search(nil).nearest(
          to: query,
          metric: metric,
          limit: 5,
          withValues: false
        )
        #expect(found.count == 5 && found.allSatisfy { $0.score.isFinite })
      }
    }
  }

  @Test("Filters through the index of metadata find what looking at each record finds")
  func metadataIndex() async {
    var generator = SeededGenerator.forTest()
    var matrix = VectorMatrix(dimension: 2)
    var rows: [String: VectorRecord] = [:]
    let query: [Float] = [1, 0.5]
    for step in 0..<6000 {
      let id = "v\(Int.random(in: 0..<1500, using: &generator))"
      if rows[id] != nil, Int.random(in: 0..<4, using: &generator) == 0 {
        matrix.remove(id)
        rows[id] = nil
      } else {
        let record = VectorRecord(
          id: id,
          values: randomVector(2, &generator),
          metadata: randomMetadata(&generator)
        )
        matrix.upsert(record)
        rows[id] = record
      }
      guard step % 300 == 299 else { continue }
      for filter in Self.filters {
        let found = await matrix.search(filter).nearest(
          to: query,
          metric: .cosine,
          limit: 25,
          withValues: false
        )
        #expect(found.map(\.record.id) == expected(rows, query, .cosine, filter, limit: 25))
        let matching = rows.values.filter { filter.matches($0.metadata) }.map(\.id)
        #expect(Set(matrix.search(filter).ids()) == Set(matching))
      }
    }
  }

  @Test("A row costs the same in a large index as in a small one", .timeLimit(.minutes(5)))
  func manyRows() {
    var matrix = VectorMatrix(dimension: 1)
    for number in 0..<60_000 {
      let metadata = ["id": MetadataValue.number(Double(number))]
      matrix.upsert(VectorRecord(id: "v\(number)", values: [1], metadata: metadata))
      // From here on the key is indexed.
      if number == 1000 { #expect(matrix.search(.equal("id", .number(7))).ids() == ["v7"]) }
    }

    for number in 0..<30_000 { matrix.remove("v\(number)") }
    #expect(matrix.search(.equal("id", .number(59_999))).ids() == ["v59999"])
    #expect(matrix.search(.equal("id", .number(7))).ids().isEmpty)
  }

  @Test("More keys than are kept, and keys of long lists, give right answers too")
  func manyKeys() {
    var matrix = VectorMatrix(dimension: 1)
    let list = MetadataValue.strings((0..<200).map { "e\($0)" })
    for number in 0..<1000 {
      var metadata = ["list": list]
      for key in 0..<40 { metadata["k\(key)"] = .number(Double(number % (key + 2))) }
      matrix.upsert(VectorRecord(id: "v\(number)", values: [1], metadata: metadata))
    }

    for key in 0..<40 {
      let found = matrix.search(.equal("k\(key)", .number(1))).ids()
      #expect(found.count == (0..<1000).count { $0 % (key + 2) == 1 })
    }
    #expect(matrix.search(.equal("list", .string("e7"))).ids().count == 1000)
    matrix.remove("v1")
    #expect(matrix.search(.equal("k0", .number(1))).ids().count == 499)
    #expect(matrix.search(.equal("list", .string("e7"))).ids().count == 999)
  }

  private static let filters: [MetadataFilter] = [
    .equal("color", .string("red")), .equal("tags", .string("x")),
    .notEqual("color", .string("red")),
    .isIn("color", [.string("red"), .string("blue"), .string("none")]),
    .isNotIn("tags", [.string("x")]),
    .compare("year", .greaterOrEqual, 5), .compare("year", .less, 2), .exists("year", false),
    .and([
      .compare("year", .greater, 2), .compare("year", .lessOrEqual, 6),
      .equal("ok", .boolean(true)),
    ]),
    .or([
      .equal("color", .string("red")), .and([.equal("year", .number(3)), .exists("tags", true)]),
    ]),
    .or([.equal("color", .string("red")), .exists("tags", false)]), .and([]), .or([]),
    .and([.notEqual("color", .string("red"))]), .isIn("year", [.number(1), .string("red")]),
  ]

  private func randomMetadata(_ generator: inout SeededGenerator) -> [String: MetadataValue] {
    var metadata: [String: MetadataValue] = [:]
    if Bool.random(using: &generator) {
      metadata["color"] = .string(
        ["red", "green", "blue"].randomElement(using: &generator) ?? "red"
      )
    }
    if Bool.random(using: &generator) {
      metadata["year"] = .number(Double(Int.random(in: 0..<9, using: &generator)))
    } else if Bool.random(using: &generator) {
      metadata["year"] = .string("red")
    }
    if Bool.random(using: &generator) {
      metadata["tags"] = .strings(["x", "y", "x"].shuffled(using: &generator).dropLast())
    }
    if Bool.random(using: &generator) { metadata["ok"] = .boolean(Bool.random(using: &generator)) }
    return metadata
  }

  private func randomVector(_ dimension: Int, _ generator: inout SeededGenerator) -> [Float] {
    (0..<dimension).map { _ in Float.random(in: -1...1, using: &generator) }
  }
}

extension Float {
  fileprivate init(pow2 exponent: Int) {
    self.init(sign: .plus, exponent: exponent, significand: 1)
  }
}
