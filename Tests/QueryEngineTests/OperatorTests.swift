import DocumentModel
import QueryEngine
import Testing

@Suite("Operators of a filter")
struct OperatorTests {
  /// One document for each kind of value, named by its ID; `missing` has no field `f`.
  static let values: [(String, FirestoreValue)] = [
    ("null", .null), ("false", .boolean(false)), ("true", .boolean(true)),
    ("nan", .double(.nan)), ("minusInfinity", .double(-.infinity)), ("minusZero", .double(-0.0)),
    ("zero", .integer(0)), ("one", .integer(1)), ("oneDouble", .double(1)),
    ("half", .double(1.5)), ("big", .integer(9_007_199_254_740_993)),
    ("bigDouble", .double(9_007_199_254_740_992)),
    ("time", .timestamp(Timestamp(microseconds: 5))), ("empty", .string("")),
    ("a", .string("a")), ("bytes", .bytes([1])), ("reference", .name("c/a")),
    ("geo", .geoPoint(GeoPoint(latitude: 1, longitude: 2))),
    ("array", .array([.integer(1), .null, .double(.nan)])), ("vector", .vector([1])),
    ("map", .map(["k": .integer(1)])),
  ]

  static let numbers = [
    "minusInfinity", "minusZero", "zero", "one", "oneDouble", "half", "big", "bigDouble",
  ]

  static let all = values.map(\.0)

  static let table: [(Query.Filter, Set<String>)] = [
    (.field("f", .equal, .integer(1)), ["one", "oneDouble"]),
    (.field("f", .equal, .double(0)), ["zero", "minusZero"]),
    (.field("f", .equal, .double(-0.0)), ["zero", "minusZero"]),
    (.field("f", .equal, .integer(9_007_199_254_740_993)), ["big"]),
    (.field("f", .equal, .null), []),
    (.field("f", .equal, .double(.nan)), []),
    (.field("f", .equal, .array([.double(1), .null, .double(.nan)])), ["array"]),
    (.field("f", .equal, .map(["k": .double(1)])), ["map"]),
    (.field("f", .equal, .string("b")), []),
    (.unary("f", .isNull), ["null"]),
    (.unary("f", .isNaN), ["nan"]),
    (.unary("f", .isNotNull), Set(all).subtracting(["null"])),
    (.unary("f", .isNotNaN), Set(all).subtracting(["null", "nan"])),
    (.field("f", .lessThan, .integer(1)), ["minusInfinity", "minusZero", "zero"]),
    (
      .field("f", .lessThanOrEqual, .integer(1)),
      ["minusInfinity", "minusZero", "zero", "one", "oneDouble"]
    ),
    (.field("f", .greaterThan, .double(1)), ["half", "big", "bigDouble"]),
    (.field("f", .greaterThan, .double(9_007_199_254_740_992)), ["big"]),
    (.field("f", .greaterThanOrEqual, .double(-.infinity)), Set(numbers)),
    (.field("f", .greaterThan, .double(-0.0)), ["one", "oneDouble", "half", "big", "bigDouble"]),
    (.field("f", .lessThan, .double(.nan)), []),
    (.field("f", .greaterThanOrEqual, .double(.nan)), []),
    (.field("f", .greaterThanOrEqual, .null), []),
    (.field("f", .lessThanOrEqual, .null), []),
    (.field("f", .lessThanOrEqual, .boolean(true)), ["false", "true"]),
    (.field("f", .lessThan, .string("a")), ["empty"]),
    (.field("f", .greaterThanOrEqual, .string("")), ["empty", "a"]),
    (.field("f", .greaterThanOrEqual, .bytes([])), ["bytes"]),
    (.field("f", .greaterThan, .timestamp(Timestamp(microseconds: 4))), ["time"]),
    (.field("f", .lessThan, .name("d/a")), ["reference"]),
    (.field("f", .lessThan, .geoPoint(GeoPoint(latitude: 1, longitude: 3))), ["geo"]),
    (.field("f", .greaterThanOrEqual, .array([])), ["array"]),
    (.field("f", .greaterThanOrEqual, .vector([0])), ["vector"]),
    (.field("f", .greaterThanOrEqual, .map([:])), ["map"]),
    (.field("f", .notEqual, .integer(1)), Set(all).subtracting(["null", "one", "oneDouble"])),
    (.field("f", .notEqual, .null), []),
    (.field("f", .notEqual, .double(.nan)), Set(all).subtracting(["null"])),
    (
      .field("f", .in, .array([.integer(1), .string("a"), .integer(1)])), ["one", "oneDouble", "a"]
    ),
    (.field("f", .in, .array([.null, .double(.nan), .boolean(true)])), ["true"]),
    (.field("f", .in, .array([.null])), []),
    (
      .field("f", .notIn, .array([.integer(0), .string("a")])),
      Set(all).subtracting(["null", "zero", "minusZero", "a"])
    ),
    (.field("f", .notIn, .array([.double(.nan)])), Set(all).subtracting(["null"])),
    (
      .field("f", .notIn, .array([.double(.nan), .integer(0)])),
      Set(all).subtracting(["null", "zero", "minusZero"])
    ),
    (.field("f", .notIn, .array([.null, .integer(1)])), []),
    (.field("f", .arrayContains, .double(1)), ["array"]),
    (.field("f", .arrayContains, .null), []),
    (.field("f", .arrayContains, .double(.nan)), []),
    (.field("f", .arrayContainsAny, .array([.integer(9), .integer(1)])), ["array"]),
    (.field("f", .arrayContainsAny, .array([.null, .double(.nan)])), []),
    (
      .and([.field("f", .greaterThan, .integer(0)), .field("f", .lessThan, .integer(2))]),
      ["one", "oneDouble", "half"]
    ),
    (
      .or([.field("f", .equal, .integer(0)), .field("f", .greaterThan, .string(""))]),
      ["zero", "minusZero", "a"]
    ),
  ]

  @Test("An operator matches what its type allows", arguments: table)
  func matches(filter: Query.Filter, expected: Set<String>) async throws {
    let fixture = try await QueryFixture()
    try await fixture.write(Self.values.map { ("c/\($0.0)", ["f": $0.1]) })
    try await fixture.set("c/missing", ["g": .integer(1)])

    #expect(Set(try await fixture.ids(.c(filter))) == expected)
  }

  @Test("Results are in the order of types and values, names breaking ties")
  func totalOrder() async throws {
    let fixture = try await QueryFixture()
    try await fixture.write(Self.values.shuffled().map { ("c/\($0.0)", ["f": $0.1]) })
    let ascending = [
      "null", "false", "true", "nan", "minusInfinity", "minusZero", "zero", "one", "oneDouble",
      "half", "bigDouble", "big", "time", "empty", "a", "bytes", "reference", "geo", "array",
      "vector", "map",
    ]

    #expect(try await fixture.ids(.c(orders: [.by("f")])) == ascending)
    #expect(
      try await fixture.ids(.c(orders: [.by("f", descending: true)])) == ascending.reversed()
    )
  }

  @Test("Filters on the name compare whole names")
  func names() async throws {
    let fixture = try await QueryFixture()
    try await fixture.write(["c/1", "c/2", "c/3", "c/2/c/1", "d/1"].map { ($0, [:]) })
    func ids(_ comparison: Query.FieldOperator, _ operand: FirestoreValue) async throws -> [String]
    {
      try await fixture.ids(.c(.field(.documentID, comparison, operand)))
    }

    #expect(try await ids(.equal, .name("c/2")) == ["2"])
    #expect(try await ids(.equal, .name("d/1")) == [])
    #expect(try await ids(.notEqual, .name("c/2")) == ["1", "3"])
    #expect(try await ids(.greaterThan, .name("c/2/c/1")) == ["3"])
    #expect(try await ids(.lessThanOrEqual, .name("c/2")) == ["1", "2"])
    #expect(try await ids(.in, .array([.name("c/3"), .name("c/1"), .name("c/9")])) == ["1", "3"])
    #expect(try await ids(.notIn, .array([.name("c/3")])) == ["1", "2"])
  }

  @Test("Text orders by its UTF-8 bytes, as fields and as ids")
  func utf8() async throws {
    let fixture = try await QueryFixture()
    let texts = ["a", "é", "\u{FFFD}", "\u{1F600}"]
    try await fixture.write(texts.shuffled().map { ("c/\($0)", ["f": .string($0)]) })
    try await fixture.set("c/__id7__", ["f": .string("~")])
    try await fixture.set("c/__id-3__", ["f": .string("~")])

    #expect(
      try await fixture.ids(.c(orders: [.by("f")])) == ["a", "__id-3__", "__id7__"] + texts[1...]
    )
    #expect(try await fixture.ids(.c()) == ["__id-3__", "__id7__"] + texts)
  }
}
