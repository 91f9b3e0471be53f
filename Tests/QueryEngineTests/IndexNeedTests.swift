import DocumentModel
import Logging
import QueryEngine
import Testing

@Suite("Indexes that production reads")
struct IndexNeedTests {
  private static let a = FieldPath(["a"])
  private static let b = FieldPath(["b"])
  private static let one = FirestoreValue.integer(1)

  /// Returns the fields of each index that a query uses; `isComposite` if it must be declared.
  private func needs(
    _ filter: Query.Filter? = nil,
    _ orders: [Query.Order] = [],
    isGroup: Bool = false,
    findNearest: FindNearest? = nil
  ) throws -> [(used: [String], isComposite: Bool)] {
    let query = Query(
      database: DatabaseName(project: "p", database: "d"),
      collectionID: "c",
      allDescendants: isGroup,
      filter: filter,
      orders: orders,
      findNearest: findNearest
    )
    let runner = QueryRunner(logger: Logger(label: "test"))
    return IndexNeed.all(of: try runner.prepare(query)).map {
      ($0.used.map(\.properties), $0.isComposite)
    }
  }

  @Test("Single fields and equalities need none but those that are there")
  func automatic() throws {
    let cases: [(Query.Filter?, [Query.Order], [String])] = [
      (nil, [], ["(__name__ ASC)"]),
      (.field(Self.a, .equal, Self.one), [], ["(a ASC, __name__ ASC)"]),
      (.field(Self.a, .greaterThan, Self.one), [], ["(a ASC, __name__ ASC)"]),
      (nil, [Query.Order(Self.a, descending: true)], ["(a DESC, __name__ DESC)"]),
      (
        .and([.field(Self.a, .equal, Self.one), .field(Self.b, .arrayContains, Self.one)]), [],
        ["(a ASC, __name__ ASC)", "(b CONTAINS, __name__ ASC)"]
      ),
      (
        .field(Self.a, .equal, Self.one), [Query.Order(Self.a)], ["(a ASC, __name__ ASC)"]
      ),
    ]
    for (filter, orders, expected) in cases {
      let found = try needs(filter, orders)
      #expect(found.map(\.used) == [expected])
      #expect(found.map(\.isComposite) == [false])
    }
  }

  @Test("An order beside other fields, two orders, a group and a search need one of their own")
  func composite() throws {
    let equality = Query.Filter.field(Self.a, .equal, Self.one)
    let cases: [([(used: [String], isComposite: Bool)], String)] = [
      (try needs(equality, [Query.Order(Self.b)]), "(a ASC, b ASC, __name__ ASC)"),
      (
        try needs(nil, [Query.Order(Self.a), Query.Order(Self.b, descending: true)]),
        "(a ASC, b DESC, __name__ DESC)"
      ),
      (
        try needs(.and([equality, .field(Self.b, .lessThan, Self.one)])),
        "(a ASC, b ASC, __name__ ASC)"
      ),
      (
        try needs(equality, [Query.Order(.documentID, descending: true)]),
        "(a ASC, __name__ DESC)"
      ),
      (try needs(equality, isGroup: true), "(a ASC, __name__ ASC)"),
      (
        try needs(
          equality,
          findNearest: FindNearest(field: Self.b, vector: [1], measure: .cosine, limit: 1)
        ),
        "(a ASC, __name__ ASC, b VECTOR<1>)"
      ),
    ]
    for (found, expected) in cases {
      #expect(found.map(\.isComposite) == [true])
      #expect(found.map(\.used) == [[expected]])
    }
  }

  @Test("Each disjunct has its own, alike ones together")
  func disjuncts() throws {
    let values = FirestoreValue.array([.integer(1), .integer(2)])
    #expect(try needs(.field(Self.a, .in, values)).count == 1)
    let either = Query.Filter.or([
      .field(Self.a, .equal, Self.one), .field(Self.b, .equal, Self.one),
    ])
    #expect(
      try needs(either).map(\.used) == [["(a ASC, __name__ ASC)"], ["(b ASC, __name__ ASC)"]]
    )
  }
}
