import DatabaseModel
import JSONText
import Testing

@testable import DatabaseRules

@Suite("Queries in the Realtime Database's rules")
struct QueryRulesTests {
  private typealias Bound = DatabaseQuery.Bound

  private func check(_ expression: String, _ query: DatabaseQuery) throws {
    #expect(try outcome(expression, query: query) == .isTrue, "\(expression)")
  }

  @Test("Without a query, the order is by key and everything else is null")
  func none() throws {
    let rules = try DatabaseRuleset(
      parsing: #"""
        {"rules":{".read":"query.orderByKey == true && query.orderByValue == false
          && query.orderByPriority == false && query.orderByChild == null && query.startAt == null
          && query.endAt == null && query.equalTo == null && query.limitToFirst == null
          && query.limitToLast == null",".write":"query.orderByKey"}}
        """#
    )
    let request = DatabaseRulesRequest(
      auth: .null,
      nowMilliseconds: 0,
      data: DatabaseNode.empty,
      newData: DatabaseNode.empty
    )
    #expect(rules.read(.root, query: nil, request).isAllowed)
    #expect(rules.write([.root], request).isAllowed)
  }

  @Test("The variables have the query's order, bounds and limit")
  func variables() throws {
    try check("query.orderByKey && !query.orderByPriority", DatabaseQuery(order: .key))
    try check("query.orderByValue && !query.orderByKey", DatabaseQuery(order: .value))
    try check("query.orderByPriority && !query.orderByKey", DatabaseQuery())
    try check(
      "query.orderByChild == 'a/b' && !query.orderByKey",
      DatabaseQuery(order: .child(DatabasePath(["a", "b"])))
    )
    var query = DatabaseQuery(order: .value, start: Bound(.leaf(.string("x"))))
    try check("query.startAt == 'x' && query.endAt == null && query.equalTo == null", query)
    query.end = Bound(.leaf(.number(3)))
    try check("query.startAt == 'x' && query.endAt == 3 && query.equalTo == null", query)
    query.start = Bound(.leaf(.number(3)))
    try check("query.equalTo == 3 && query.startAt == 3 && query.endAt == 3", query)
    query.end?.isInclusive = false
    try check("query.equalTo == null", query)
    query = DatabaseQuery(limit: DatabaseQuery.Limit(10, isFromEnd: false))
    try check("query.limitToFirst == 10 && query.limitToLast == null", query)
    query.limit?.isFromEnd = true
    try check("query.limitToLast <= 10 && query.limitToFirst == null", query)
    #expect(try outcome("query.limitToFirst <= 10", query: query) == .fails)
  }

  @Test("With the order by key, bounds are keys")
  func keys() throws {
    let key = Bound(.null, key: .key(DatabaseKey("k")))
    try check("query.startAt == 'k'", DatabaseQuery(order: .key, start: key))
    try check("query.equalTo == 'k'", DatabaseQuery(order: .key, start: key, end: key))
    try check("query.endAt == null", DatabaseQuery(order: .key, start: key, end: nil))
  }

  @Test("An index counts at its own level, for any key where the level is a variable")
  func indexes() throws {
    let rules = try DatabaseRuleset(
      parsing: #"""
        {"rules":{"scores":{".indexOn":".value"},"games":{"$game":{".indexOn":["a","b/c"],
          "x":{}}},"one":{".indexOn":"/a/b/"}}}
        """#
    )
    func missing(_ order: DatabaseQuery.Order, _ text: String) throws -> String? {
      rules.missingIndex(order, at: try path(text))
    }
    let (a, bc) = (DatabasePath(["a"]), DatabasePath(["b", "c"]))
    #expect(try missing(.value, "/scores") == nil)
    #expect(try missing(.child(a), "/scores") == "a")
    #expect(try missing(.child(a), "/games/1") == nil)
    #expect(try missing(.child(bc), "/games/2") == nil)
    #expect(try missing(.child(DatabasePath(["b"])), "/games/2") == "b")
    #expect(try missing(.value, "/games/2") == ".value")
    #expect(try missing(.child(a), "/games") == "a")
    #expect(try missing(.child(a), "/games/1/x") == "a")
    #expect(try missing(.child(a), "/games/1/y/z") == "a")
    #expect(try missing(.child(DatabasePath(["a", "b"])), "/one") == nil)
    #expect(try missing(.child(a), "/") == "a")
    #expect(try missing(.key, "/x") == nil)
    #expect(try missing(.priority, "/x") == nil)
  }
}
