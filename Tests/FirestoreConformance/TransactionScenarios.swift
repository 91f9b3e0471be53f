import StatusCodes

/// Transactions that a client drives with a token.
let transactionScenarios: [Scenario] = [
  Scenario(
    "A transaction reads, writes and commits once, though the commit is sent twice",
    [
      .store(["c/a": #"{"n":{"integerValue":"1"}}"#]),
      .ok(.beginTransaction, #"{"database":"$D"}"#).keeping("transaction", as: "$token"),
      .ok(
        .batchGet,
        #"{"database":"$D","documents":["$R/c/a"],"transaction":"$token"}"#,
        #"[{"found":{"name":"$R/c/a","fields":{"n":{"integerValue":"1"}}}}]"#
      ),
      .ok(
        .runQuery,
        #"{"parent":"$R","structuredQuery":{"from":[{"collectionId":"c"}]},"transaction":"$token"}"#,
        #"[{"document":{"name":"$R/c/a","fields":{"n":{"integerValue":"1"}}}}]"#
      ),
      .ok(
        .commit,
        #"{"database":"$D","transaction":"$token","writes":[{"update":{"name":"$R/c/a"}}]}"#,
        #"{"writeResults":[{}]}"#
      ),
      .document("c/a", "{}"),
      .store(["c/a": #"{"n":{"integerValue":"2"}}"#]),
      .ok(
        .commit,
        #"{"database":"$D","transaction":"$token","writes":[{"update":{"name":"$R/c/a"}}]}"#,
        #"{"writeResults":[{}]}"#
      ),
      .document("c/a", #"{"n":{"integerValue":"2"}}"#),
      .fails(
        .commit,
        #"{"database":"$D","transaction":"$token"}"#,
        .invalidArgument,
        "The transaction has been committed with other writes. Begin another one for these."
      ),
    ]
  ),
  Scenario(
    "The first read can begin the transaction, and a rollback ends it",
    [
      .ok(
        .batchGet,
        #"{"database":"$D","documents":["$R/c/a"],"newTransaction":{}}"#,
        #"[{},{"missing":"$R/c/a"}]"#
      )
      .keeping("transaction", as: "$token"),
      .ok(.rollback, #"{"database":"$D","transaction":"$token"}"#, "{}"),
      .fails(
        .getDocument,
        #"{"name":"$R/c/a","transaction":"$token"}"#,
        .invalidArgument,
        "The referenced transaction has expired or is no longer valid."
      ),
      .ok(
        .runQuery,
        #"{"parent":"$R","structuredQuery":{"from":[{"collectionId":"c"}]},"newTransaction":{"readOnly":{}}}"#,
        "[{},{}]"
      )
      .keeping("transaction", as: "$token"),
      .ok(.rollback, #"{"database":"$D","transaction":"$token"}"#, "{}"),
      .ok(.batchGet, #"{"database":"$D","newTransaction":{"readWrite":{}}}"#, "[{}]")
        .keeping("transaction", as: "$token"),
      .ok(
        .beginTransaction,
        #"{"database":"$D","options":{"readWrite":{"retryTransaction":"$token"}}}"#
      ),
    ]
  ),
  Scenario(
    "A read-only transaction sees one time and cannot write",
    [
      .store(["c/a": #"{"n":{"integerValue":"1"}}"#]),
      .ok(.beginTransaction, #"{"database":"$D","options":{"readOnly":{}}}"#)
        .keeping("transaction", as: "$token"),
      .ok(
        .getDocument,
        #"{"name":"$R/c/a","transaction":"$token"}"#,
        #"{"name":"$R/c/a","fields":{"n":{"integerValue":"1"}}}"#
      ),
      .store(["c/a": #"{"n":{"integerValue":"2"}}"#]),
      .ok(
        .getDocument,
        #"{"name":"$R/c/a","transaction":"$token"}"#,
        #"{"name":"$R/c/a","fields":{"n":{"integerValue":"1"}}}"#
      ),
      .fails(
        .commit,
        #"{"database":"$D","transaction":"$token","writes":[{"delete":"$R/c/a"}]}"#,
        .invalidArgument,
        "Cannot modify entities in a read-only transaction."
      ),
    ]
  ),
  Scenario(
    "A read can be at an earlier time",
    [
      .store(["c/a": #"{"n":{"integerValue":"1"}}"#]),
      .ok(.batchGet, #"{"database":"$D","documents":["$R/c/a"]}"#).keeping("readTime", as: "$time"),
      .store(["c/a": #"{"n":{"integerValue":"2"}}"#, "c/b": "{}"]),
      .ok(
        .getDocument,
        #"{"name":"$R/c/a","readTime":"$time"}"#,
        #"{"name":"$R/c/a","fields":{"n":{"integerValue":"1"}}}"#
      ),
      .ok(
        .runQuery,
        #"{"parent":"$R","structuredQuery":{"from":[{"collectionId":"c"}]},"readTime":"$time"}"#,
        #"[{"document":{"name":"$R/c/a","fields":{"n":{"integerValue":"1"}}}}]"#
      ),
      .fails(
        .getDocument,
        #"{"name":"$R/c/a","readTime":"2999-01-01T00:00:00Z"}"#,
        .invalidArgument,
        "The requested 'read_time' cannot be in the future."
      ),
      .fails(
        .getDocument,
        #"{"name":"$R/c/a","readTime":"2020-01-01T00:00:00Z"}"#,
        .failedPrecondition,
        "The requested 'read_time' is too old."
      ),
      .fails(
        .getDocument,
        #"{"name":"$R/c/a","readTime":"2020-01-01T00:00:00.000000001Z"}"#,
        .invalidArgument,
        "timestamp cannot have more than microseconds precision"
      ),
    ]
  ),
]
