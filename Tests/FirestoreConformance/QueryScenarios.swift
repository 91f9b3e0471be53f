import StatusCodes

/// Queries and aggregations.
let queryScenarios: [Scenario] = [
  Scenario(
    "Filters, orders, cursors, offset and limit choose and order documents",
    [
      people,
      .query(c, finds: "c/ann", "c/bob", "c/cat", "c/dan"),
      .query(
        #"\#(c),"where":\#(field("age", "GREATER_THAN", #"{"doubleValue":20.5}"#))"#,
        finds: "c/bob",
        "c/cat"
      ),
      .query(
        #"\#(c),"where":\#(field("age", "NOT_EQUAL", #"{"integerValue":"30"}"#))"#,
        finds: "c/ann",
        "c/dan"
      ),
      .query(
        #"\#(c),"where":\#(field("tags", "ARRAY_CONTAINS", #"{"stringValue":"x"}"#))"#,
        finds: "c/ann",
        "c/cat"
      ),
      .query(
        #"\#(c),"where":\#(field("age", "IN", list(#"{"integerValue":"20"}"#, #"{"stringValue":"old"}"#)))"#,
        finds: "c/ann",
        "c/dan"
      ),
      .query(
        #"\#(c),"orderBy":[\#(order("age", "DESCENDING"))]"#,
        finds: "c/dan",
        "c/cat",
        "c/bob",
        "c/ann"
      ),
      .query(
        #"\#(c),"orderBy":[\#(order("age"))],"startAt":{"values":[{"integerValue":"30"}],"before":true},"limit":2"#,
        finds: "c/bob",
        "c/cat"
      ),
      .query(
        #"\#(c),"orderBy":[\#(order("age"))],"startAt":{"values":[{"integerValue":"30"}]}"#,
        finds: "c/dan"
      ),
      .query(
        #"\#(c),"orderBy":[\#(order("age"))],"endAt":{"values":[{"integerValue":"30"}],"before":true}"#,
        finds: "c/ann"
      ),
      .query(#"\#(c),"limit":0"#),
    ]
  ),
  Scenario(
    "And, or, null and not-a-number",
    [
      .store([
        "c/a": #"{"v":{"nullValue":null}}"#, "c/b": #"{"v":{"doubleValue":"NaN"}}"#,
        "c/c": #"{"v":{"integerValue":"1"},"w":{"integerValue":"1"}}"#, "c/d": "{}",
      ]),
      .query(#"\#(c),"where":\#(unary("v", "IS_NULL"))"#, finds: "c/a"),
      .query(#"\#(c),"where":\#(unary("v", "IS_NAN"))"#, finds: "c/b"),
      .query(#"\#(c),"where":\#(unary("v", "IS_NOT_NULL"))"#, finds: "c/b", "c/c"),
      .query(
        #"\#(c),"where":\#(composite("OR", unary("v", "IS_NULL"), field("w", "EQUAL", #"{"doubleValue":1}"#)))"#,
        finds: "c/a",
        "c/c"
      ),
      .query(
        #"\#(c),"where":\#(composite("AND", unary("v", "IS_NAN"), field("w", "EQUAL", #"{"doubleValue":1}"#)))"#
      ),
    ]
  ),
  Scenario(
    "Offsets are counted, projections reduce fields, and an empty result has a read time",
    [
      people,
      .ok(
        .runQuery,
        #"""
        {"parent":"$R","structuredQuery":{\#(c),"offset":2,"limit":1,
         "select":{"fields":[{"fieldPath":"age"}]}}}
        """#,
        #"""
        [{"skippedResults":2},
         {"document":{"name":"$R/c/cat","fields":{"age":{"integerValue":"30"}}}}]
        """#
      ),
      .ok(
        .runQuery,
        #"{"parent":"$R","structuredQuery":{"from":[{"collectionId":"none"}]}}"#,
        "[{}]"
      )
      .keeping("readTime", as: "$time"),
    ]
  ),
  Scenario(
    "A collection group reaches below its parent only",
    [
      .store(["a/1/m/x": "{}", "a/2/m/y": "{}", "m/z": "{}", "a/1/n/m": "{}"]),
      .query(
        #""from":[{"collectionId":"m","allDescendants":true}]"#,
        finds: "a/1/m/x",
        "a/2/m/y",
        "m/z"
      ),
      .ok(
        .runQuery,
        #"{"parent":"$R/a/1","structuredQuery":{"from":[{"collectionId":"m","allDescendants":true}]}}"#,
        #"[{"document":{"name":"$R/a/1/m/x"}}]"#
      ),
      .ok(
        .runQuery,
        #"{"parent":"$R/a/1","structuredQuery":{"from":[{"allDescendants":true}]}}"#,
        #"[{"document":{"name":"$R/a/1/m/x"}},{"document":{"name":"$R/a/1/n/m"}}]"#
      ),
    ]
  ),
  Scenario(
    "Counts, sums and averages are of documents that have every field in question",
    [
      .store([
        "c/a": #"{"n":{"integerValue":"1"},"k":{"integerValue":"1"}}"#,
        "c/b": #"{"n":{"doubleValue":2.5},"k":{"stringValue":"x"}}"#,
        "c/c": #"{"n":{"stringValue":"x"},"k":{"integerValue":"4"}}"#, "c/d": "{}",
      ]),
      aggregate(#"{"count":{}}"#, #"{"field_1":{"integerValue":"4"}}"#),
      aggregate(#"{"alias":"all","count":{"upTo":"3"}}"#, #"{"all":{"integerValue":"3"}}"#),
      aggregate(
        #"{"sum":{"field":{"fieldPath":"k"}}},{"count":{}}"#,
        #"{"field_1":{"integerValue":"5"},"field_2":{"integerValue":"3"}}"#
      ),
      aggregate(
        #"{"alias":"s","sum":{"field":{"fieldPath":"n"}}},{"alias":"a","avg":{"field":{"fieldPath":"n"}}}"#,
        #"{"s":{"doubleValue":3.5},"a":{"doubleValue":1.75}}"#
      ),
      aggregate(
        #"{"alias":"s","sum":{"field":{"fieldPath":"z"}}},{"alias":"a","avg":{"field":{"fieldPath":"z"}}}"#,
        #"{"s":{"integerValue":"0"},"a":{"nullValue":null}}"#
      ),
      unsummable(#"\#(c),"limit":1,"orderBy":[\#(order("__name__", "DESCENDING"))]"#),
      unsummable(
        #"\#(c),"where":\#(field("__name__", "EQUAL", #"{"referenceValue":"$R/c/a"}"#))"#
      ),
      unsummable(
        #""from":[{}],"where":\#(field("__name__", "GREATER_THAN", #"{"referenceValue":"$R/c/a"}"#))"#
      ),
      unsummable(#""from":[{"allDescendants":true}]"#, parent: "$R/c/a"),
      unsummable(#""from":[{"collectionId":"c","allDescendants":true}]"#, parent: "$R/c/a"),
      aggregate(
        #"{"alias":"s","sum":{"field":{"fieldPath":"k"}}}"#,
        query: #"\#(c),"orderBy":[\#(order("k")),\#(order("__name__"))],"limit":1"#,
        #"{"s":{"integerValue":"1"}}"#
      ),
    ]
  ),
  Scenario(
    "Under a limit, aggregated fields take part in the order before the name",
    [
      .store([
        "c/a": #"{"n":{"integerValue":"30"},"g":{"integerValue":"1"}}"#,
        "c/b": #"{"n":{"integerValue":"8"},"g":{"integerValue":"1"}}"#,
        "c/c": #"{"n":{"integerValue":"2"},"g":{"integerValue":"2"}}"#,
        "c/d": #"{"n":{"integerValue":"3"},"g":{"integerValue":"2"}}"#,
        "c/e": #"{"g":{"integerValue":"0"}}"#,
      ]),
      aggregate(
        #"{"alias":"s","sum":{"field":{"fieldPath":"n"}}},{"alias":"c","count":{}}"#,
        query: #"\#(c),"limit":2"#,
        #"{"s":{"integerValue":"5"},"c":{"integerValue":"2"}}"#
      ),
      aggregate(
        #"{"alias":"s","sum":{"field":{"fieldPath":"n"}}}"#,
        query: #"\#(c),"limit":2,"offset":1"#,
        #"{"s":{"integerValue":"11"}}"#
      ),
      aggregate(
        #"{"alias":"s","sum":{"field":{"fieldPath":"n"}}}"#,
        query: #"\#(c),"limit":3,"orderBy":[\#(order("g", "DESCENDING"))]"#,
        #"{"s":{"integerValue":"35"}}"#
      ),
      aggregate(
        #"{"alias":"s","sum":{"field":{"fieldPath":"n"}}}"#,
        query:
          #"\#(c),"limit":1,"where":\#(field("g", "GREATER_THAN", #"{"integerValue":"0"}"#))"#,
        #"{"s":{"integerValue":"8"}}"#
      ),
      aggregate(
        #"{"alias":"a","count":{"upTo":"2"}},{"alias":"b","count":{"upTo":"4"}}"#,
        #"{"a":{"integerValue":"2"},"b":{"integerValue":"4"}}"#
      ),
      aggregate(
        #"{"alias":"a","count":{"upTo":"2"}},{"alias":"b","count":{}}"#,
        #"{"a":{"integerValue":"2"},"b":{"integerValue":"5"}}"#
      ),
      aggregate(
        #"{"alias":"a","count":{"upTo":"4"}}"#,
        query: #"\#(c),"offset":3"#,
        #"{"a":{"integerValue":"2"}}"#
      ),
    ]
  ),
  Scenario(
    "Under a cursor, a limit and an offset count the documents in the order of the summed fields",
    [
      .store([
        "c/a": #"{"n":{"integerValue":"30"},"g":{"integerValue":"1"}}"#,
        "c/b": #"{"n":{"integerValue":"8"},"g":{"integerValue":"1"}}"#,
        "c/c": #"{"n":{"integerValue":"2"},"g":{"integerValue":"2"}}"#,
        "c/d": #"{"n":{"integerValue":"300"},"g":{"integerValue":"2"}}"#,
        "c/e": #"{"g":{"integerValue":"1"}}"#,
        "c/f": #"{"n":{"integerValue":"1000"},"g":{"integerValue":"0"}}"#,
      ]),
      aggregate(
        #"{"alias":"s","sum":{"field":{"fieldPath":"n"}}}"#,
        query:
          #"\#(c),"orderBy":[\#(order("g"))],"startAt":{"values":[\#(one)],"before":true},"offset":1"#,
        #"{"s":{"integerValue":"332"}}"#
      ),
      aggregate(
        #"{"alias":"s","sum":{"field":{"fieldPath":"n"}}},{"alias":"c","count":{}}"#,
        query:
          #"\#(c),"orderBy":[\#(order("g"))],"startAt":{"values":[\#(one)],"before":true},"offset":1,"limit":1"#,
        #"{"s":{"integerValue":"30"},"c":{"integerValue":"1"}}"#
      ),
      aggregate(
        #"{"alias":"a","avg":{"field":{"fieldPath":"n"}}}"#,
        query:
          #"\#(c),"orderBy":[\#(order("g", "DESCENDING"))],"endAt":{"values":[\#(one)]},"limit":2"#,
        #"{"a":{"doubleValue":151}}"#
      ),
      aggregate(
        #"{"alias":"s","sum":{"field":{"fieldPath":"n"}}}"#,
        query: #"\#(c),"startAt":{"before":true},"limit":2"#,
        #"{"s":{"integerValue":"10"}}"#
      ),
      aggregate(
        #"{"alias":"s","sum":{"field":{"fieldPath":"n"}}}"#,
        query:
          #"\#(c),"where":\#(composite("AND", field("n", "GREATER_THAN", one), field("__name__", "GREATER_THAN", #"{"referenceValue":"$R/c/b"}"#))),"limit":2"#,
        #"{"s":{"integerValue":"302"}}"#
      ),
    ]
  ),
  Scenario(
    "Without a collection's id, sums are of the documents at one depth or at any",
    [
      .store([
        "c/a": #"{"n":{"integerValue":"5"}}"#, "d/b": #"{"n":{"integerValue":"3"}}"#,
        "c/a/e/x": #"{"n":{"integerValue":"1"}}"#, "c/z": "{}",
      ]),
      aggregate(
        #"{"alias":"s","sum":{"field":{"fieldPath":"n"}}}"#,
        query: #""from":[{}]"#,
        #"{"s":{"integerValue":"8"}}"#
      ),
      aggregate(
        #"{"alias":"s","sum":{"field":{"fieldPath":"n"}}}"#,
        query: #""from":[{"allDescendants":true}]"#,
        #"{"s":{"integerValue":"9"}}"#
      ),
      aggregate(
        #"{"alias":"s","sum":{"field":{"fieldPath":"n"}}}"#,
        query: #""from":[{"allDescendants":true}],"limit":2"#,
        #"{"s":{"integerValue":"4"}}"#
      ),
    ]
  ),
  Scenario(
    "A sum past 64 bits becomes a double",
    [
      .store([
        "c/a": #"{"n":{"integerValue":"9223372036854775807"}}"#,
        "c/b": #"{"n":{"integerValue":"1"}}"#,
      ]),
      aggregate(
        #"{"alias":"s","sum":{"field":{"fieldPath":"n"}}}"#,
        #"{"s":{"doubleValue":9.223372036854775808e18}}"#
      ),
    ]
  ),
  Scenario(
    "Null and NaN are found by operators of their own only",
    [
      .store([
        "c/a": #"{"v":{"nullValue":null}}"#,
        "c/b": #"{"v":{"doubleValue":"NaN"}}"#,
        "c/c": #"{"v":{"integerValue":"1"}}"#,
      ]),
      .query(#"\#(c),"where":\#(field("v", "EQUAL", #"{"nullValue":null}"#))"#),
      .query(#"\#(c),"where":\#(field("v", "EQUAL", #"{"doubleValue":"NaN"}"#))"#),
      .query(#"\#(c),"where":\#(field("v", "NOT_EQUAL", #"{"nullValue":null}"#))"#),
      .query(
        #"\#(c),"where":\#(field("v", "NOT_EQUAL", #"{"doubleValue":"NaN"}"#))"#,
        finds: "c/b",
        "c/c"
      ),
      .query(
        #"\#(c),"where":\#(field("v", "NOT_IN", list(#"{"doubleValue":"NaN"}"#)))"#,
        finds: "c/b",
        "c/c"
      ),
    ]
  ),
  Scenario(
    "What is left out of a query has a meaning",
    [
      .store(["c/a": #"{"n":\#(one)}"#, "d/b": "{}", "c/a/d/x": "{}"]),
      .query("", finds: "c/a", "c/a/d/x", "d/b"),
      .query(#""from":[{}]"#, finds: "c/a", "d/b"),
      .query(#"\#(c),"where":{"compositeFilter":{"op":"AND"}}"#, finds: "c/a"),
      .ok(
        .runQuery,
        #"{"parent":"$R","structuredQuery":{\#(c),"select":{}}}"#,
        #"[{"document":{"name":"$R/c/a"}}]"#
      ),
      .ok(
        .runAggregationQuery,
        #"{"parent":"$R","structuredAggregationQuery":{"aggregations":[{"alias":"n","count":{}}]}}"#,
        #"[{"result":{"aggregateFields":{"n":{"integerValue":"3"}}}}]"#
      ),
      aggregate(#"{"alias":"n","count":{"upTo":"0"}}"#, #"{"n":{"integerValue":"0"}}"#),
      .ok(
        .runQuery,
        #"{"parent":"$R","structuredQuery":{\#(c),"offset":3,"limit":0}}"#,
        #"[{"skippedResults":1}]"#
      ),
    ]
  ),
  Scenario(
    "Malformed queries are refused in production's words",
    [
      refused(#"\#(c),"limit":-1"#, "limit is negative"),
      refused(
        #"\#(c),"where":\#(field("a", "EQUAL", #"{"stringValue":"\#(String(repeating: "x", count: 1500))"}"#))"#,
        "value for a is too large to be used in a query"
      ),
      .fails(
        .runQuery,
        #"{"parent":"$R/c/a","structuredQuery":{"from":[{"collectionId":"c","allDescendants":true}],"orderBy":[\#(order("a"))]}}"#,
        .invalidArgument,
        "collection group queries are only allowed at the root parent"
      ),
      refused(#"\#(c),"offset":-1"#, "offset is negative"),
      refused(#"\#(c),"where":{}"#, "Unknown Filter type."),
      refused(
        #"\#(c),"where":\#(field("a", "IN", #"{"integerValue":"1"}"#))"#,
        "'IN' requires an ArrayValue."
      ),
      refused(
        #"\#(c),"orderBy":[\#(order("a"))],"startAt":{"values":[\#(one),\#(one),\#(one)]}"#,
        "Cursor has too many values."
      ),
      .fails(
        .runQuery,
        #"{"parent":"$R/c/a/d","structuredQuery":{\#(c)}}"#,
        .invalidArgument,
        #"Document parent name "$R/c/a/d" lacks "/" at index 54."#
      ),
      .fails(
        .runQuery,
        #"{"parent":"$R"}"#,
        .invalidArgument,
        "only structured queries are supported"
      ),
      .fails(
        .runAggregationQuery,
        #"{"parent":"$R","structuredAggregationQuery":{"structuredQuery":{\#(c)}}}"#,
        .invalidArgument,
        "Aggregations can not be empty."
      ),
      .fails(
        .runAggregationQuery,
        #"""
        {"parent":"$R","structuredAggregationQuery":{"structuredQuery":{\#(c)},
         "aggregations":[{"alias":"a","count":{}},{"alias":"a","count":{}}]}}
        """#,
        .invalidArgument,
        "Aggregation aliases contain duplicate alias: a."
      ),
      refusedAggregation(
        #"{"count":{"upTo":"-1"}}"#,
        "The `up_to` value in a COUNT aggregation must be greater than or equal to zero."
      ),
      refusedAggregation(
        #"{"avg":{"field":{"fieldPath":"__name__"}}}"#,
        "Aggregations are not supported for the property: __key__"
      ),
      refusedAggregation(
        #"{"alias":"\#(String(repeating: "a", count: 1501))","count":{}}"#,
        "The property.name is longer than 1500 bytes."
      ),
      refused(
        #"\#(c),"where":{"fieldFilter":{"field":{"fieldPath":"a"},"op":"GREATER_THAN","value":\#(one)}},"startAt":{"values":[\#(one)]}"#,
        "Cursor has too many values."
      ),
      refused(
        #"\#(c),"where":\#(field("__name__", "EQUAL", elsewhere))"#,
        "The request was for database '$D' but was attempting to access database "
          + "'projects/demo-psst/databases/other'"
      ),
      refused(
        #"\#(c),"orderBy":[\#(order("__name__"))],"startAt":{"values":[\#(elsewhere)]}"#,
        "The cursor key is in a different database than the query"
      ),
    ]
  ),
]

private let c = #""from":[{"collectionId":"c"}]"#
private let elsewhere =
  #"{"referenceValue":"projects/demo-psst/databases/other/documents/c/a"}"#
private let one = #"{"integerValue":"1"}"#

private let people = Scenario.Step.store([
  "c/ann": #"{"age":{"integerValue":"20"},"tags":\#(list(#"{"stringValue":"x"}"#))}"#,
  "c/bob": #"{"age":{"doubleValue":30}}"#,
  "c/cat": #"{"age":{"integerValue":"30"},"tags":\#(list(#"{"stringValue":"x"}"#))}"#,
  "c/dan": #"{"age":{"stringValue":"old"}}"#,
])

private func list(_ values: String...) -> String {
  #"{"arrayValue":{"values":[\#(values.joined(separator: ","))]}}"#
}

private func field(_ path: String, _ op: String, _ value: String) -> String {
  #"{"fieldFilter":{"field":{"fieldPath":"\#(path)"},"op":"\#(op)","value":\#(value)}}"#
}

private func unary(_ path: String, _ op: String) -> String {
  #"{"unaryFilter":{"field":{"fieldPath":"\#(path)"},"op":"\#(op)"}}"#
}

private func composite(_ op: String, _ filters: String...) -> String {
  #"{"compositeFilter":{"op":"\#(op)","filters":[\#(filters.joined(separator: ","))]}}"#
}

private func order(_ path: String, _ direction: String = "ASCENDING") -> String {
  #"{"field":{"fieldPath":"\#(path)"},"direction":"\#(direction)"}"#
}

private func refused(_ query: String, _ message: String) -> Scenario.Step {
  .fails(
    .runQuery,
    #"{"parent":"$R","structuredQuery":{\#(query)}}"#,
    .invalidArgument,
    message
  )
}

private func refusedAggregation(_ aggregation: String, _ message: String) -> Scenario.Step {
  .fails(
    .runAggregationQuery,
    #"""
    {"parent":"$R","structuredAggregationQuery":{"structuredQuery":{\#(c)},
     "aggregations":[\#(aggregation)]}}
    """#,
    .invalidArgument,
    message
  )
}

/// A sum that needs an index with the summed field after the name.
private func unsummable(_ query: String, parent: String = "$R") -> Scenario.Step {
  .fails(
    .runAggregationQuery,
    #"""
    {"parent":"\#(parent)","structuredAggregationQuery":{"structuredQuery":{\#(query)},
     "aggregations":[{"sum":{"field":{"fieldPath":"k"}}}]}}
    """#,
    .invalidArgument,
    "This query requires an index with fields [k] after __name__ and Firestore does not currently "
      + "support such an index. Please try the query again with additional ordering on those fields."
  )
}

private func aggregate(
  _ aggregations: String,
  query: String = c,
  _ results: String
) -> Scenario.Step {
  .ok(
    .runAggregationQuery,
    #"""
    {"parent":"$R","structuredAggregationQuery":{"structuredQuery":{\#(query)},
     "aggregations":[\#(aggregations)]}}
    """#,
    #"[{"result":{"aggregateFields":\#(results)}}]"#
  )
}
