import StatusCodes

/// Commits: masks, transforms, preconditions, batches.
let writeScenarios: [Scenario] = [
  Scenario(
    "A masked write sets, deletes and leaves fields; an empty mask only makes the document exist",
    [
      .store([
        "c/a": #"{"a":{"integerValue":"1"},"b":{"integerValue":"2"},"m":{"stringValue":"x"}}"#
      ]),
      .commit(
        #"""
        {"update":{"name":"$R/c/a","fields":{"m":{"mapValue":{"fields":{"x":{"nullValue":null}}}}}},
         "updateMask":{"fieldPaths":["a","m.x"]}}
        """#
      ),
      .document(
        "c/a",
        #"{"b":{"integerValue":"2"},"m":{"mapValue":{"fields":{"x":{"nullValue":null}}}}}"#
      ),
      .commit(#"{"update":{"name":"$R/c/e","fields":{}},"updateMask":{}}"#),
      .document("c/e", "{}"),
    ]
  ),
  Scenario(
    "Transforms compute from the stored value and answer with the new one",
    [
      .store(["c/a": #"{"n":{"integerValue":"5"},"l":\#(list("1", "2", "1"))}"#]),
      .ok(
        .commit,
        #"""
        {"database":"$D","writes":[{"update":{"name":"$R/c/a"},"updateMask":{},"updateTransforms":[
         {"fieldPath":"n","increment":{"integerValue":"2"}},
         {"fieldPath":"n","maximum":{"doubleValue":6.5}},
         {"fieldPath":"new","minimum":{"integerValue":"3"}},
         {"fieldPath":"l","appendMissingElements":\#(elements("2", "3", "3"))},
         {"fieldPath":"l","removeAllFromArray":\#(elements("1"))}]}]}
        """#,
        #"""
        {"writeResults":[{"transformResults":[{"integerValue":"7"},{"integerValue":"7"},
         {"integerValue":"3"},{"nullValue":null},{"nullValue":null}]}]}
        """#
      ),
      .document(
        "c/a",
        #"{"n":{"integerValue":"7"},"new":{"integerValue":"3"},"l":\#(list("2", "3"))}"#
      ),
    ]
  ),
  Scenario(
    "An increment stops at the ends of 64 bits and becomes a double with one",
    [
      .store(["c/a": #"{"n":{"integerValue":"9223372036854775807"},"d":{"integerValue":"1"}}"#]),
      .commit(
        #"""
        {"update":{"name":"$R/c/a"},"updateMask":{},"updateTransforms":[
         {"fieldPath":"n","increment":{"integerValue":"1"}},
         {"fieldPath":"d","increment":{"doubleValue":0.5}}]}
        """#
      ),
      .document("c/a", #"{"n":{"integerValue":"9223372036854775807"},"d":{"doubleValue":1.5}}"#),
    ]
  ),
  Scenario(
    "A server timestamp is the same throughout a commit, and a legacy transform sets it too",
    [
      .ok(
        .commit,
        #"""
        {"database":"$D","writes":[{"transform":{"document":"$R/c/a","fieldTransforms":[
         {"fieldPath":"at","setToServerValue":"REQUEST_TIME"}]}}]}
        """#
      )
      .keeping("timestampValue", as: "$time"),
      .document("c/a", #"{"at":{"timestampValue":"$time"}}"#),
    ]
  ),
  Scenario(
    "A precondition on existence",
    [
      .fails(
        .commit,
        #"{"database":"$D","writes":[{"update":{"name":"$R/c/a"},"currentDocument":{"exists":true}}]}"#,
        .notFound,
        "No document to update: $R/c/a"
      ),
      .commit(#"{"update":{"name":"$R/c/a"},"currentDocument":{"exists":false}}"#),
      .fails(
        .commit,
        #"{"database":"$D","writes":[{"update":{"name":"$R/c/a"},"currentDocument":{"exists":false}}]}"#,
        .alreadyExists,
        "Document already exists: $R/c/a"
      ),
      .commit(#"{"verify":"$R/c/a","currentDocument":{"exists":true}}"#),
      .fails(
        .updateDocument,
        #"{"document":{"name":"$R/c/z"},"currentDocument":{"exists":true}}"#,
        .notFound,
        "No document to update: $R/c/z"
      ),
      .ok(.deleteDocument, #"{"name":"$R/c/a","currentDocument":{"exists":true}}"#, "{}"),
      .missing("c/a"),
    ]
  ),
  Scenario(
    "A precondition on the update time",
    [
      .ok(
        .createDocument,
        #"{"parent":"$R","collectionId":"c","documentId":"a","document":{}}"#
      )
      .keeping("updateTime", as: "$version"),
      .commit(#"{"update":{"name":"$R/c/a"},"currentDocument":{"updateTime":"$version"}}"#),
      .commit(#"{"update":{"name":"$R/c/a","fields":{"n":{"nullValue":null}}}}"#),
      .ok(.getDocument, #"{"name":"$R/c/a"}"#).keeping("updateTime", as: "$newer"),
      .ok(
        .deleteDocument,
        #"{"name":"$R/c/a","currentDocument":{"updateTime":"$newer"}}"#,
        "{}"
      ),
      .fails(
        .commit,
        #"""
        {"database":"$D","writes":[{"update":{"name":"$R/c/a"},
         "currentDocument":{"updateTime":"2020-01-01T00:00:00Z"}}]}
        """#,
        .failedPrecondition,
        "the stored version (0) does not match the required base version (1577836800000000)"
      ),
      .commit(#"{"update":{"name":"$R/c/a"}}"#),
      .fails(
        .commit,
        #"""
        {"database":"$D","writes":[{"update":{"name":"$R/c/a"},
         "currentDocument":{"updateTime":"2999-01-01T00:00:00Z"}}]}
        """#,
        .invalidArgument,
        "Invalid base version, it is greater than the stored version: $R/c/a"
      ),
    ]
  ),
  Scenario(
    "A commit whose last write fails changes nothing",
    [
      .fails(
        .commit,
        #"""
        {"database":"$D","writes":[{"update":{"name":"$R/c/a"}},
         {"update":{"name":"$R/c/b"},"currentDocument":{"exists":true}}]}
        """#,
        .notFound,
        "No document to update: $R/c/b"
      ),
      .missing("c/a"),
      .ok(.commit, #"{"database":"$D"}"#, "{}"),
    ]
  ),
  Scenario(
    "A write that changes nothing keeps the document's version",
    [
      .store(["c/a": #"{"n":{"integerValue":"1"}}"#]),
      .ok(.getDocument, #"{"name":"$R/c/a"}"#).keeping("updateTime", as: "$version"),
      .store(["c/a": #"{"n":{"integerValue":"1"}}"#]),
      .commit(#"{"delete":"$R/c/a","currentDocument":{"updateTime":"$version"}}"#),
    ]
  ),
  Scenario(
    "Each write of a batch has an outcome of its own",
    [
      .store(["c/b": "{}"]),
      .ok(
        .batchWrite,
        #"""
        {"database":"$D","writes":[{"update":{"name":"$R/c/a"}},
         {"update":{"name":"$R/c/b"},"currentDocument":{"exists":false}},{"delete":"$R/c/c"}]}
        """#,
        #"""
        {"writeResults":[{},{},{}],
         "status":[{},{"code":6,"message":"Document already exists: $R/c/b"},{}]}
        """#
      ),
      .document("c/a", "{}"),
      .fails(
        .batchWrite,
        #"{"database":"$D","writes":[{"delete":"$R/c/a"},{"delete":"$R/c/a"}]}"#,
        .invalidArgument,
        "the same document cannot be written more than once in a single request"
      ),
    ]
  ),
  Scenario(
    "A mask of the answer that no document can have is refused before anything is written",
    [
      .fails(
        .updateDocument,
        #"{"document":{"name":"$R/c/a","fields":{}},"mask":{"fieldPaths":["\#(longPath)"]}}"#,
        .invalidArgument,
        "property path is longer than 1500 bytes."
      ),
      .fails(
        .createDocument,
        #"""
        {"parent":"$R","collectionId":"c","documentId":"a","document":{},
         "mask":{"fieldPaths":["\#(longPath)"]}}
        """#,
        .invalidArgument,
        "property path is longer than 1500 bytes."
      ),
      .missing("c/a"),
    ]
  ),
]

private let longPath = String(repeating: "a", count: 1501)

private func elements(_ numbers: String...) -> String {
  array(numbers)
}

private func list(_ numbers: String...) -> String {
  #"{"arrayValue":\#(array(numbers))}"#
}

private func array(_ numbers: [String]) -> String {
  let values = numbers.map { #"{"integerValue":"\#($0)"}"# }
  return #"{"values":[\#(values.joined(separator: ","))]}"#
}
