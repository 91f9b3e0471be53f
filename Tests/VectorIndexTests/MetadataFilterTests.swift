import Testing
import VectorIndex

@Suite("Metadata filters")
struct MetadataFilterTests {
  private let metadata: [String: MetadataValue] = [
    "s": .string("a"), "n": .number(5), "b": .boolean(true), "l": .strings(["x", "y"]),
  ]

  @Test(
    "A filter that holds passes the record",
    arguments: [
      MetadataFilter.equal("s", .string("a")), .equal("n", .number(5)),
      .equal("l", .string("y")), .notEqual("l", .string("z")), .notEqual("missing", .number(1)),
      .compare("n", .greater, 4), .compare("n", .greaterOrEqual, 5), .compare("n", .less, 6),
      .compare("n", .lessOrEqual, 5), .isIn("l", [.string("z"), .string("x")]),
      .isNotIn("s", [.string("b")]), .exists("b", true), .exists("missing", false),
      .and([.equal("s", .string("a")), .exists("n", true)]),
      .or([.equal("s", .string("b")), .exists("n", true)]), .and([]),
    ]
  )
  func passes(filter: MetadataFilter) {
    #expect(filter.matches(metadata))
  }

  @Test(
    "A filter that does not hold stops the record",
    arguments: [
      MetadataFilter.equal("s", .string("b")), .equal("missing", .string("a")),
      .notEqual("l", .string("x")), .compare("s", .greater, 0), .compare("n", .greater, 5),
      .compare("n", .less, 5), .isIn("s", []), .isNotIn("l", [.string("x")]),
      .exists("b", false), .and([.exists("b", true), .exists("b", false)]), .or([]),
    ]
  )
  func stops(filter: MetadataFilter) {
    #expect(!filter.matches(metadata))
  }
}
