import StatusCodes

/// Calls that create, read, list, update and delete single documents.
let documentScenarios: [Scenario] = [
  Scenario(
    "A document is created, read, updated and deleted",
    [
      .missing("c/a"),
      .ok(
        .createDocument,
        #"{"parent":"$R","collectionId":"c","documentId":"a","document":{"fields":{"n":{"integerValue":"1"}}}}"#,
        #"{"name":"$R/c/a","fields":{"n":{"integerValue":"1"}}}"#
      ),
      .document("c/a", #"{"n":{"integerValue":"1"}}"#),
      .fails(
        .createDocument,
        #"{"parent":"$R","collectionId":"c","documentId":"a","document":{}}"#,
        .alreadyExists,
        "Document already exists: $R/c/a"
      ),
      .ok(
        .updateDocument,
        #"{"document":{"name":"$R/c/a","fields":{"m":{"nullValue":null}}}}"#,
        #"{"name":"$R/c/a","fields":{"m":{"nullValue":null}}}"#
      ),
      .ok(.deleteDocument, #"{"name":"$R/c/a"}"#, "{}"),
      .ok(.deleteDocument, #"{"name":"$R/c/a"}"#, "{}"),
      .missing("c/a"),
    ]
  ),
  Scenario(
    "A document created without an id gets one of twenty characters",
    [
      .ok(.createDocument, #"{"parent":"$R","collectionId":"c","document":{}}"#)
        .keeping("name", as: "$name"),
      .ok(.getDocument, #"{"name":"$name"}"#, #"{"name":"$name"}"#),
    ]
  ),
  Scenario(
    "Masks choose what is written and what is returned",
    [
      .store(["c/a": #"{"a":{"integerValue":"1"},"b":{"integerValue":"2"},"m":\#(nested)}"#]),
      .ok(
        .updateDocument,
        #"""
        {"document":{"name":"$R/c/a","fields":{"a":{"integerValue":"9"},"b":{"integerValue":"9"}}},
         "updateMask":{"fieldPaths":["a","m.x"]},"mask":{"fieldPaths":["a","m"]}}
        """#,
        #"""
        {"name":"$R/c/a","fields":{"a":{"integerValue":"9"},
         "m":{"mapValue":{"fields":{"y.z":{"integerValue":"2"}}}}}}
        """#
      ),
      .ok(
        .getDocument,
        #"{"name":"$R/c/a","mask":{"fieldPaths":["b","nope","m.`y.z`"]}}"#,
        #"""
        {"name":"$R/c/a","fields":{"b":{"integerValue":"2"},
         "m":{"mapValue":{"fields":{"y.z":{"integerValue":"2"}}}}}}
        """#
      ),
    ]
  ),
  Scenario(
    "Every kind of value comes back as it was",
    [
      .store(["c/a": allValues]),
      .document("c/a", allValues),
    ]
  ),
  Scenario(
    "Several documents are read at once, each name once",
    [
      .store(["c/a": #"{"n":{"integerValue":"1"}}"#]),
      .ok(
        .batchGet,
        #"{"database":"$D","documents":["$R/c/a","$R/c/z","$R/c/a"]}"#,
        #"[{"found":{"name":"$R/c/a","fields":{"n":{"integerValue":"1"}}}},{"missing":"$R/c/z"}]"#
      ),
      .ok(.batchGet, #"{"database":"$D"}"#, "[]"),
      .ok(
        .batchGet,
        #"{"database":"$D","documents":["$R/c/a"],"mask":{}}"#,
        #"[{"found":{"name":"$R/c/a"}}]"#
      ),
    ]
  ),
  Scenario(
    "A collection is listed page by page, without its subcollections",
    [
      .store(["c/a": "{}", "c/a/d/x": "{}", "c/b": "{}", "c/c": "{}", "d/a": "{}"]),
      .ok(
        .listDocuments,
        #"{"parent":"$R","collectionId":"c","pageSize":2}"#,
        #"{"documents":[{"name":"$R/c/a"},{"name":"$R/c/b"}]}"#
      )
      .keeping("nextPageToken", as: "$page"),
      .ok(
        .listDocuments,
        #"{"parent":"$R","collectionId":"c","pageSize":2,"pageToken":"$page"}"#,
        #"{"documents":[{"name":"$R/c/c"}]}"#
      ),
      .ok(.listDocuments, #"{"parent":"$R","collectionId":"empty"}"#, "{}"),
    ]
  ),
  Scenario(
    "A list can be ordered, and can show missing parents",
    [
      .store([
        "c/a": #"{"n":{"integerValue":"1"}}"#, "c/b": #"{"n":{"integerValue":"2"}}"#,
        "c/p/d/x": "{}",
      ]),
      .ok(
        .listDocuments,
        #"{"parent":"$R","collectionId":"c","orderBy":"n desc","mask":{"fieldPaths":["__name__"]}}"#,
        #"{"documents":[{"name":"$R/c/b"},{"name":"$R/c/a"}]}"#
      ),
      .ok(
        .listDocuments,
        #"{"parent":"$R","collectionId":"c","showMissing":true,"mask":{"fieldPaths":["__name__"]}}"#,
        #"{"documents":[{"name":"$R/c/a"},{"name":"$R/c/b"},{"name":"$R/c/p"}]}"#
      ),
      .fails(
        .listDocuments,
        #"{"parent":"$R","collectionId":"c","showMissing":true,"orderBy":"n"}"#,
        .invalidArgument,
        "cannot specify an order when show_missing is true"
      ),
    ]
  ),
  Scenario(
    "The collections below the root and below a document are listed",
    [
      .store(["c/a": "{}", "c/a/e/x": "{}", "d/p/f/x": "{}"]),
      .ok(.listCollectionIDs, #"{"parent":"$R"}"#, #"{"collectionIds":["c","d"]}"#),
      .ok(.listCollectionIDs, #"{"parent":"$R/c/a"}"#, #"{"collectionIds":["e"]}"#),
      .ok(.listCollectionIDs, #"{"parent":"$R/c/z"}"#, "{}"),
      .ok(.listCollectionIDs, #"{"parent":"$R","pageSize":1}"#, #"{"collectionIds":["c"]}"#)
        .keeping("nextPageToken", as: "$page"),
      .ok(
        .listCollectionIDs,
        #"{"parent":"$R","pageSize":1,"pageToken":"$page"}"#,
        #"{"collectionIds":["d"]}"#
      ),
    ]
  ),
  Scenario(
    "Ids may hold spaces, colons, accents and numbers",
    [
      .store(["c/a b": "{}", "c/x:runQuery": "{}", "c/é": "{}", "c/__id7__": "{}"]),
      .document("c/a b", "{}"),
      .document("c/x:runQuery", "{}"),
      .document("c/é", "{}"),
      .document("c/__id7__", "{}"),
      .query(
        #""from":[{"collectionId":"c"}]"#,
        finds: "c/__id7__",
        "c/a b",
        "c/x:runQuery",
        "c/é"
      ),
    ]
  ),
]

private let nested =
  #"{"mapValue":{"fields":{"x":{"integerValue":"1"},"y.z":{"integerValue":"2"}}}}"#

private let allValues = #"""
  {"null":{"nullValue":null},"no":{"booleanValue":false},"zero":{"integerValue":"0"},
   "max":{"integerValue":"9223372036854775807"},"half":{"doubleValue":0.5},
   "nan":{"doubleValue":"NaN"},"inf":{"doubleValue":"-Infinity"},
   "time":{"timestampValue":"2026-01-02T03:04:05.678901Z"},"empty":{"stringValue":""},
   "text":{"stringValue":"é😀\n"},"bytes":{"bytesValue":"AP8="},
   "ref":{"referenceValue":"projects/other/databases/x/documents/c/z"},
   "place":{"geoPointValue":{"latitude":1.5,"longitude":-2}},"list":{"arrayValue":{}},
   "map":{"mapValue":{}},"deep":{"arrayValue":{"values":[{"mapValue":{"fields":{
    "list":{"arrayValue":{"values":[{"nullValue":null}]}}}}}]}},
   "vector":{"mapValue":{"fields":{"__type__":{"stringValue":"__vector__"},
    "value":{"arrayValue":{"values":[{"doubleValue":1},{"doubleValue":0.25}]}}}}}}
  """#
