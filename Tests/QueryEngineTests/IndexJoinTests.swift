import DocumentModel
import QueryEngine
import QueryModel
import Testing

@Suite("Joined indexes")
struct IndexJoinTests {
  private static let a = Query.Filter.field("a", .equal, .integer(1))
  private static let b = Query.Filter.field("b", .equal, .integer(2))
  private static let tag = Query.Filter.field("t", .arrayContains, .integer(0))

  /// 600 documents with indexes on `a`, `b` and `t`, created by a few queries.
  private static func fixture(orders: [Query.Order] = []) async throws -> QueryFixture {
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 599))
    try await fixture.write(
      (0..<600).map { number in
        let tags = [number % 3, number % 7].map { FirestoreValue.integer(Int64($0)) }
        return (
          "c/\(number)",
          [
            "a": .integer(Int64(number % 4)), "b": .integer(Int64(number % 5)), "t": .array(tags),
            "n": .integer(Int64(number * 37 % 101)),
          ]
        )
      }
    )
    for filter in [a, b, tag] { _ = try await fixture.run(.c(filter, orders: orders)) }
    try await fixture.buildIndexes()
    return fixture
  }

  @Test("Documents that one of the tests rules out are not read")
  func cost() async throws {
    let fixture = try await Self.fixture()
    for (filters, descriptions) in [
      ([Self.a, Self.b], ["c: a ↑", "c: b ↑"]), ([Self.b, Self.tag], ["c: b ↑", "c: t ∋"]),
      ([Self.a, Self.b, Self.tag], ["c: a ↑", "c: b ↑", "c: t ∋"]),
    ] {
      let query = Query.c(.and(filters))
      let (documents, statistics) = try await fixture.run(query)
      let expected = ReferenceEvaluator(query: query).results(fixture.model.values)
      #expect(documents == expected)
      #expect(statistics.indexes.map(\.description) == descriptions)
      #expect(statistics.scanned - statistics.passedEntries == expected.count)
    }
  }

  @Test("A count is of the entries alone, and so is what an offset passes over")
  func offsets() async throws {
    let fixture = try await Self.fixture()
    let query = Query.c(.and([Self.a, Self.b]), offset: 20, limit: 3)
    let (documents, statistics) = try await fixture.run(query)
    let all = ReferenceEvaluator(query: .c(.and([Self.a, Self.b]))).results(fixture.model.values)

    #expect(documents == Array(all[20..<23]))
    #expect(statistics.skipped == 20)
    let past = try await fixture.run(.c(.and([Self.a, Self.b]), offset: 1000, limit: 1))
    #expect(past.documents.isEmpty && past.statistics.skipped == all.count)
  }

  @Test(
    "Both directions, orders, limits and cursors give what a scan gives",
    arguments: [false, true],
    [nil, "n"]
  )
  func directions(descending: Bool, field: String?) async throws {
    let orders: [Query.Order] =
      (field.map { [.by($0, descending: descending)] } ?? [])
      + [.by("__name__", descending: descending)]
    let fixture = try await Self.fixture(orders: orders)
    let values: [FirestoreValue] = (field == nil ? [] : [.integer(50)]) + [.name("c/422")]
    let cursors = [true, false].map { Query.Cursor(values, before: $0) }
    for filters in [[Self.a, Self.b], [Self.b, Self.tag], [Self.a, Self.tag]] {
      for limit in [nil, 1, 7, 100] {
        for (start, end) in [
          (nil, nil), (cursors[0], nil), (cursors[1], nil), (nil, cursors[0]), (nil, cursors[1]),
        ] {
          let query = Query.c(.and(filters), orders: orders, start: start, end: end, limit: limit)
          let (documents, statistics) = try await fixture.run(query)
          let expected = ReferenceEvaluator(query: query).results(fixture.model.values)
          #expect(documents.map(\.name.id) == expected.map(\.name.id), "\(query)")
          #expect(statistics.indexes.count == 2 || start != nil || end != nil || limit == 1)
        }
      }
    }
  }

  @Test("The last document of each range and those between are found, wherever the ranges end")
  func edges() async throws {
    for (left, right) in [
      ([0, 1, 2, 3], [3]), ([3], [0, 1, 2, 3]), ([0, 9], [9, 10]), ([0, 2, 4], [1, 3, 5]),
      ([], [1]),
      (Array(0..<90), [0, 40, 89]), ([5], Array(0..<90)), (Array(0..<90), Array(30..<150)),
    ] {
      let fixture = try await QueryFixture(.init(scanCandidatesMax: 0, joinEntriesMin: 0))
      try await fixture.write(
        (0..<150).map { number in
          (
            "c/\(number)",
            [
              "a": .boolean(left.contains(number)), "b": .boolean(right.contains(number)),
            ]
          )
        }
      )
      let a = Query.Filter.field("a", .equal, .boolean(true))
      let b = Query.Filter.field("b", .equal, .boolean(true))
      for filter in [a, b] { _ = try await fixture.run(.c(filter)) }
      try await fixture.buildIndexes()
      let (documents, statistics) = try await fixture.run(.c(.and([a, b])))

      let expected = Set(left).intersection(right).map { "\($0)" }.sorted()
      #expect(documents.map(\.name.id) == expected)
      #expect(statistics.indexes.count == 2)
    }
  }

  @Test("A joined range of values that tie in the index does not count for an offset")
  func cutValues() async throws {
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 0, joinEntriesMin: 1))
    let long = String(repeating: "\0", count: 1400)
    try await fixture.write(
      (0..<24).map {
        ("c/\($0)", ["f": .string(long + ["p", "q"][$0 % 2]), "g": .integer(Int64($0 % 3))])
      }
    )
    let f = Query.Filter.field("f", .equal, .string(long + "p"))
    let g = Query.Filter.field("g", .equal, .integer(1))
    for filter in [f, g] { _ = try await fixture.run(.c(filter)) }
    try await fixture.buildIndexes()

    for offset in 0..<5 {
      let query = Query.c(.and([f, g]), offset: offset)
      let (documents, statistics) = try await fixture.run(query)
      let expected = ReferenceEvaluator(query: query).results(fixture.model.values)
      #expect(documents == expected)
      #expect(statistics.indexes.count == 2)
    }
  }

  @Test("An index that is half built is not joined")
  func halfBuilt() async throws {
    let fixture = try await QueryFixture(
      .init(scanCandidatesMax: 0, joinEntriesMin: 1, backfillDocumentsMax: 10)
    )
    try await IndexTests.fill(fixture, 40)
    let a = Query.Filter.field("a", .equal, .integer(1))
    let b = Query.Filter.field("b", .equal, .integer(33))
    _ = try await fixture.run(.c(a))
    try await fixture.buildIndexes()
    _ = try await fixture.run(.c(b))
    // The commit that registers the index, and the first ten documents.
    try await fixture.buildIndexes(commitsMax: 2)

    let (documents, statistics) = try await fixture.run(.c(.and([a, b])))
    #expect(fixture.engine.indexes().map(\.isReady) == [true, false])
    #expect(documents.map(\.name.id) == ["33"])
    #expect(statistics.indexes.map(\.description) == ["c: a ↑"])
  }
}
