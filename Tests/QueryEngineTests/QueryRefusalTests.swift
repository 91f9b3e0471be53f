import DocumentModel
import QueryEngine
import StatusCodes
import Testing

@Suite("Refused queries")
struct QueryRefusalTests {
  static func integers(_ count: Int) -> FirestoreValue {
    .array((0..<count).map { .integer(Int64($0)) })
  }

  static func equalities(_ count: Int) -> [Query.Filter] {
    (0..<count).map { .field("f\($0)", .equal, .integer(1)) }
  }

  static func inequalities(_ count: Int) -> [Query.Filter] {
    (0..<count).map { .field("f\($0)", .greaterThan, .integer(1)) }
  }

  static func nested(_ depth: Int) -> Query.Filter {
    (0..<depth).reduce(.field("a", .equal, .null)) { filter, _ in .and([filter]) }
  }

  static func kindless(
    _ filter: Query.Filter? = nil,
    orders: [Query.Order] = []
  ) -> Query {
    Query(
      database: QueryFixture.database,
      collectionID: nil,
      allDescendants: true,
      filter: filter,
      orders: orders
    )
  }

  static func collection(_ id: String) -> Query {
    Query(database: QueryFixture.database, collectionID: id)
  }

  static let oneNegative =
    "Only a single 'NOT_EQUAL', 'NOT_IN', 'IS_NOT_NAN', or 'IS_NOT_NULL' filter allowed per query."
  static let noDisjunctionBesideNotIn =
    "'NOT_IN' cannot be used in the same query with 'IN', 'ARRAY_CONTAINS_ANY' or 'OR'."
  static let oneArrayContains =
    "A maximum of 1 'ARRAY_CONTAINS' filter is allowed per disjunction."
  static let nothingAfterKey = "order by clause cannot contain more fields after the key"

  static let refusals: [(Query, String)] = [
    (.c(limit: -1), "limit is negative"),
    (.c(offset: -1), "offset is negative"),
    (.c(.field("a", .in, integers(31))), "'IN' supports up to 30 comparison values."),
    (.c(.field("a", .notIn, integers(11))), "'NOT_IN' supports up to 10 comparison values."),
    (
      .c(.field("a", .arrayContainsAny, integers(31))),
      "'ARRAY_CONTAINS_ANY' supports up to 30 comparison values."
    ),
    (.c(.field("a", .in, integers(0))), "'IN' requires an non-empty ArrayValue."),
    (.c(.field("a", .notIn, .integer(1))), "'NOT_IN' requires an ArrayValue."),
    (
      .c(.and([.field("a", .in, integers(6)), .field("b", .in, integers(6))])),
      "Too many disjunctions after normalization. Result had 36 disjunctions which is more than "
        + "the maximum of 30"
    ),
    (
      .c(.or(equalities(31))),
      "Too many disjunctions after normalization. Result had 31 disjunctions which is more than "
        + "the maximum of 30"
    ),
    (
      .c(.and(inequalities(11))),
      "The query contains 11 distinct inequality fields: [f0, f1, f10, f2, f3, f4, f5, f6, f7, f8, "
        + "f9]. A query may not have more than 10 distinct inequality fields."
    ),
    (
      .c(.and([.field("a", .arrayContains, .null), .field("b", .arrayContains, .null)])),
      oneArrayContains
    ),
    (
      .c(
        .and([
          .field("a", .arrayContains, .null), .field("b", .arrayContainsAny, integers(1)),
        ])
      ), oneArrayContains
    ),
    (
      .c(.and([.field("a", .notEqual, .integer(1)), .unary("b", .isNotNull)])), oneNegative
    ),
    (
      .c(.and([.field("a", .notIn, integers(1)), .field("b", .in, integers(1))])),
      noDisjunctionBesideNotIn
    ),
    (
      .c(.and([.field("a", .notIn, integers(1)), .or(equalities(2))])), noDisjunctionBesideNotIn
    ),
    (.c(.field(.documentID, .equal, .integer(1))), "__key__ filter value must be a Key"),
    (.c(.field(.documentID, .in, integers(1))), "__key__ filter value must be a Key"),
    (.c(.unary(.documentID, .isNull)), "__key__ filter value must be a Key"),
    (.c(.field(.documentID, .arrayContains, .name("c/a"))), "the name __key__ is reserved"),
    (
      .c(
        .and([
          .field(.documentID, .equal, .name("c/a")), .field("a", .lessThan, .integer(1)),
        ])
      ),
      "Equality on key is not allowed if there are other inequality fields and key does not appear "
        + "in inequalities."
    ),
    (
      .c(orders: [.by("a"), .by("a", descending: true)]),
      "order by clause cannot contain duplicate fields a"
    ),
    (.c(orders: [Query.Order(.documentID), .by("a")]), nothingAfterKey),
    (
      .c(.field("a", .greaterThan, .integer(1)), orders: [Query.Order(.documentID)]),
      nothingAfterKey
    ),
    (
      .c(orders: [.by("a")], start: Query.Cursor([.null, .name("c/a"), .null], before: true)),
      "Cursor has too many values."
    ),
    (
      .c(end: Query.Cursor([.string("a")], before: true)),
      "Cursor __key__ value is not a document reference."
    ),
    (kindless(.field("a", .equal, .integer(1))), "kind is required for filter: a"),
    (
      kindless(orders: [Query.Order(.documentID, descending: true)]),
      "kind is required for all orders except __key__ ascending"
    ),
    (
      .c(parent: "d"),
      "Document parent name \"projects/p/databases/(default)/documents/d\" lacks \"/\" at index 42."
    ),
    (collection("a/b"), "Collection id \"a/b\" is invalid because it contains \"/\"."),
    (collection("__a__"), "Collection id \"__a__\" is invalid because it is reserved."),
    (.c(.and([])), "Composite filter must have at least one sub-filter."),
    (.c(.or([])), "Composite filter must have at least one sub-filter."),
    (.c(.field("__a__", .equal, .null)), "Invalid reserved name in field path __a__"),
    (.c(orders: [.by("__a__")]), "Invalid reserved name in field path __a__"),
    (.c(projection: [FieldPath(["__a__"])]), "Invalid reserved name in field path __a__"),
    (
      .c(.and(equalities(101))),
      "The query may not have more than 100 filters + sort orders + ancestor total. Currently there "
        + "are 101 filters, 0 sort orders, and no ancestor filter."
    ),
    (
      .c(.and(equalities(99)), parent: "d/x", orders: [.by("a")]),
      "The query may not have more than 100 filters + sort orders + ancestor total. Currently there "
        + "are 99 filters, 1 sort orders, and one ancestor filter."
    ),
    (.c(nested(100)), "The filter is nested deeper than 100 levels."),
    (
      .c(.field(String(repeating: "a", count: 1501), .equal, .null)),
      "The field path is longer than 1500 bytes."
    ),
  ]

  @Test("Each refusal is INVALID_ARGUMENT in production's words", arguments: refusals)
  func refuses(query: Query, message: String) async throws {
    let engine = try await QueryFixture().engine

    #expect(throws: StatusError.invalidArgument(message)) { try engine.prepare(query) }
  }

  static let accepted: [Query] = [
    .c(limit: 0),
    .c(.field("a", .in, integers(30))),
    .c(.field("a", .notIn, integers(10))),
    .c(.and([.field("a", .in, integers(6)), .field("b", .in, integers(5))])),
    .c(.and(inequalities(10))),
    .c(.or([.field("a", .arrayContains, .null), .field("b", .arrayContains, .null)])),
    .c(.and(equalities(100))),
    .c(.and([.field("a", .notIn, integers(1)), .or(equalities(1))])),
    .c(
      .and([
        .field(.documentID, .equal, .name("c/a")), .field(.documentID, .lessThan, .name("c/b")),
        .field("a", .lessThan, .integer(1)),
      ])
    ),
    .c(orders: [.by("a")], start: Query.Cursor([.null, .name("c/a")], before: true)),
    .c(start: Query.Cursor([.name("d/e/f/g")], before: true)),
    .c(nested(99)),
    kindless(.field(.documentID, .greaterThan, .name("c/a")), orders: [Query.Order(.documentID)]),
    collection("____"),
    .c(.field(String(repeating: "a", count: 1500), .equal, .null)),
  ]

  @Test("What just keeps the limits is accepted", arguments: accepted)
  func accepts(query: Query) async throws {
    let engine = try await QueryFixture().engine

    #expect(throws: Never.self) { try engine.prepare(query) }
  }

  @Test("Of documents whose fields do not matter only the names count as memory, and as an order")
  func names() async throws {
    let fixture = try await QueryFixture(.init(sortBytesMax: 20_000))
    for number in 0..<40 {
      try await fixture.set(
        "p/\(number)/c/x",
        ["s": .string(String(repeating: "x", count: 1000))]
      )
    }
    await #expect(throws: StatusError.self) { try await fixture.run(.c(group: true)) }
    var names = Query.c(group: true)
    names.projection = [.documentID]
    #expect(try await fixture.run(names).documents.count == 40)
    // The refused query has requested an index, and with the index it succeeds.
    try await fixture.buildIndexes()
    #expect(try await fixture.run(.c(group: true)).documents.count == 40)
  }

  @Test("A result too large to sort is refused, and a limit makes it small enough")
  func sortMemory() async throws {
    let fixture = try await QueryFixture(.init(sortBytesMax: 20_000))
    let text = FirestoreValue.string(String(repeating: "x", count: 1000))
    try await fixture.write((0..<100).map { ("c/\($0)", ["f": .integer(Int64(-$0)), "t": text]) })

    await #expect(throws: StatusError.self) { try await fixture.run(.c(orders: [.by("f")])) }
    #expect(try await fixture.ids(.c(orders: [.by("f")], limit: 3)) == ["99", "98", "97"])
    #expect(try await fixture.ids(.c()).count == 100)
  }
}
