import StatusCodes

/// Invalid requests, with the codes and messages of the official servers.
let errorScenarios: [Scenario] = [
  Scenario(
    "Bad names",
    [
      .fails(
        .getDocument,
        #"{"name":"$R/c/__a__"}"#,
        .invalidArgument,
        #"Resource id "__a__" is invalid because it is reserved."#
      ),
      .fails(
        .getDocument,
        #"{"name":"$R/c/a/"}"#,
        .invalidArgument,
        #"Document name "$R/c/a/" has invalid trailing "/"."#
      ),
      write(#"{"delete":"foo"}"#, #"Document name "foo" lacks "projects" at index 0."#),
      write(#"{"delete":"$R/c"}"#, #"Document name "$R/c" lacks "/" at index 50."#),
      write(
        #"{"delete":"$R/c//a/b"}"#,
        #"Document name "$R/c//a/b" lacks a resource id at index 51."#
      ),
      write(
        #"{"delete":"projects/other/databases/(default)/documents/c/a"}"#,
        "The request was for database '$D' but was attempting to access database 'projects/other/databases/(default)'"
      ),
      .fails(
        .createDocument,
        #"{"parent":"$R","collectionId":"c","documentId":"a/b","document":{}}"#,
        .invalidArgument,
        #"Resource id "a/b" is invalid because it contains "/"."#
      ),
      .fails(
        .createDocument,
        #"{"parent":"$R/c","collectionId":"d","document":{}}"#,
        .invalidArgument,
        #"Document parent name "$R/c" lacks "/" at index 50."#
      ),
      .fails(
        .createDocument,
        #"{"parent":"$R","collectionId":"c","document":{"name":"$R/c/z"}}"#,
        .invalidArgument,
        "document.name must not be set"
      ),
    ]
  ),
  Scenario(
    "Bad writes",
    [
      write("{}", "empty write operation"),
      write(update(#"{"a":{}}"#), "Cannot convert firestore.v1.Value with type unset."),
      write(update(#"{"__a__":{"nullValue":null}}"#), "field name __a__ is reserved"),
      write(update(#"{"":{"nullValue":null}}"#), "The property.name is the empty string."),
      write(
        update(#"{"a":{"arrayValue":{"values":[{"arrayValue":{}}]}}}"#),
        "Nested arrays are not allowed"
      ),
      write(
        update(#"{"a":{"geoPointValue":{"latitude":91}}}"#),
        "Geo point latitude '91.0' outside permitted range -90.0 to 90.0."
      ),
      write(
        update(#"{"a":{"stringValue":"\#(String(repeating: "x", count: 1_048_488))"}}"#),
        #"The value of property "a" is longer than 1048487 bytes."#
      ),
      write(update(deep(21)), "Property a contains an invalid nested entity."),
      write(
        #"{"update":{"name":"$R/c/a"},"updateMask":{"fieldPaths":[""]}}"#,
        "Invalid empty property path string."
      ),
      write(
        #"{"update":{"name":"$R/c/a"},"updateTransforms":[{"fieldPath":"b","increment":{"nullValue":null}}]}"#,
        "Input must be int64 or double."
      ),
      .commit(update(deep(20))),
    ]
  ),
  Scenario(
    "Bad pages and tokens",
    [
      .fails(
        .listDocuments,
        #"{"parent":"$R","collectionId":"c","pageSize":-1}"#,
        .invalidArgument,
        "Page size must be nonnegative."
      ),
      .fails(
        .listDocuments,
        #"{"parent":"$R","collectionId":"c","pageToken":"xx"}"#,
        .invalidArgument,
        "invalid page token"
      ),
      .fails(
        .listDocuments,
        #"{"parent":"$R","collectionId":"c","orderBy":"a,"}"#,
        .invalidArgument,
        #"Invalid order by clause "a,"."#
      ),
      .fails(
        .listCollectionIDs,
        #"{"parent":"$R","pageSize":-1}"#,
        .invalidArgument,
        "page_size must be greater than or equal to zero."
      ),
    ]
  ),
]

private func write(_ write: String, _ message: String) -> Scenario.Step {
  .fails(.commit, #"{"database":"$D","writes":[\#(write)]}"#, .invalidArgument, message)
}

private func update(_ fields: String) -> String {
  #"{"update":{"name":"$R/c/a","fields":\#(fields)}}"#
}

/// A field with `levels` nested maps.
private func deep(_ levels: Int) -> String {
  let opening = String(repeating: #"{"mapValue":{"fields":{"a":"#, count: levels)
  return #"{"a":\#(opening){"nullValue":null}\#(String(repeating: "}}}", count: levels))}"#
}
