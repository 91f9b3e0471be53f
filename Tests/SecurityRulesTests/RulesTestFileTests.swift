import DocumentModel
import Testing

@testable import SecurityRules

@Suite("Files of cases")
struct RulesTestFileTests {
  /// Creates a ruleset with `rules` in the scope of a database's documents.
  private static func ruleset(_ rules: String) throws -> Ruleset {
    try Ruleset(
      name: "firestore.rules",
      content: """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{db}/documents {
            \(rules)
          }
        }
        """
    )
  }

  /// Indicates whether the rules allow the only case of a file, given by its members.
  private static func allows(
    _ rules: String,
    documents: String = "{}",
    _ members: String
  ) throws -> Bool {
    let json = """
      {"documents": \(documents), "cases": [{"name": "only", "expect": "allow", \(members)}]}
      """
    let file = try RulesTestFile(json: Array(json.utf8))
    let results = try file.run(ruleset(rules))
    #expect(results.count == 1)
    return results.first?.decision.isAllowed == true
  }

  /// Returns the error reported for a file.
  private static func mistake(in json: String) -> String? {
    do throws(RulesTestFile.MistakeError) {
      _ = try RulesTestFile(json: Array(json.utf8))
      return nil
    } catch { return error.description }
  }

  // MARK: Requests

  @Test("A case is as expected only if the rules decide so")
  func expectations() throws {
    let json = """
      {"documents": {"users/alice": {"age": 7}}, "cases": [
        {"name": "hers", "expect": "allow", "auth": {"uid": "alice"}, "method": "get",
         "path": "users/alice"},
        {"name": "not his", "expect": "deny", "auth": {"uid": "bob"}, "method": "get",
         "path": "users/alice"},
        {"name": "wrongly his", "expect": "allow", "auth": {"uid": "bob"}, "method": "get",
         "path": "users/alice"},
        {"name": "wrongly not hers", "expect": "deny", "auth": {"uid": "alice"}, "method": "get",
         "path": "users/alice"}
      ]}
      """
    let ruleset = try Self.ruleset(
      "match /users/{id} { allow get: if request.auth.uid == id; }"
    )
    let results = try RulesTestFile(json: Array(json.utf8)).run(ruleset)

    #expect(results.map(\.isAsExpected) == [true, true, false, false])
    #expect(results.map(\.name) == ["hers", "not his", "wrongly his", "wrongly not hers"])
    #expect(results.map(\.expected) == [.allow, .deny, .allow, .deny])
    #expect(results.map(\.path) == Array(repeating: "users/alice", count: 4))
    #expect(results[1].decision.answers.count == 1)
  }

  @Test(
    "Each method has its own resources",
    arguments: [
      ("get", "stored", "", "resource.data.n == 1"),
      ("get", "missing", "", "resource == null"),
      ("create", "new", #", "data": {"n": 2}"#, "resource == null && request.resource.data.n == 2"),
      ("create", "new", #", "data": {}"#, "request.resource.id == 'new'"),
      (
        "update", "stored", #", "data": {"n": 2}"#,
        "resource.data.keys() == ['a', 'm', 'n'] && request.resource.data == {'n': 2}"
      ),
      (
        "update", "stored", #", "merge": {"n": 2, "m": {"y": 3}}"#,
        "request.resource.data == {'a': 'x', 'm': {'x': 1, 'y': 3}, 'n': 2}"
      ),
      ("update", "stored", #", "merge": {"m": {}}"#, "request.resource.data.m == {}"),
      ("delete", "stored", "", "resource.data.n == 1"),
      ("delete", "missing", "", "resource == null"),
    ]
  )
  func methods(method: String, id: String, rest: String, condition: String) throws {
    let documents = #"{"t/stored": {"n": 1, "a": "x", "m": {"x": 1}}}"#
    let request = #""method": "\#(method)", "path": "t/\#(id)"\#(rest)"#
    let rule = { (condition: String) -> String in
      "match /t/{id} { allow \(method): if \(condition); }"
    }

    #expect(try Self.allows(rule(condition), documents: documents, request))
    #expect(try !Self.allows(rule("!(\(condition))"), documents: documents, request))
    #expect(
      try !Self.allows(
        "match /t/{id} { allow \(method == "get" ? "write" : "read"); }",
        documents: documents,
        request
      )
    )
  }

  @Test(
    "What JSON cannot say is said by objects of one member",
    arguments: [
      (#"{"$timestamp": "2026-01-02T03:04:05Z"}"#, "timestamp.date(2026, 1, 2) < resource.data.v"),
      (#"{"$bytes": "AP8="}"#, "resource.data.v == b'\\000\\377'"),
      (#"{"$reference": "users/x"}"#, "resource.data.v == /databases/(default)/documents/users/x"),
      (#"{"$integer": "9007199254740993"}"#, "resource.data.v == 9007199254740993"),
      (#"{"$geopoint": [1.5, -2]}"#, "resource.data.v == latlng.value(1.5, -2.0)"),
      (#"{"$double": 1}"#, "resource.data.v is float && resource.data.v == 1"),
      (#"{"$double": "NaN"}"#, "resource.data.v != resource.data.v"),
      (#"{"$double": "-Infinity"}"#, "resource.data.v < -1000000"),
      ("1", "resource.data.v is int"),
      ("1.0", "resource.data.v is float"),
      ("-9223372036854775808", "resource.data.v < -9223372036854775807"),
      (#"{"$a": 1, "b": [true, null, {"c": "d"}]}"#, "resource.data.v.b[2].c == 'd'"),
    ]
  )
  func specialValues(value: String, condition: String) throws {
    let documents = #"{"t/x": {"v": \#(value)}}"#
    let get = #""method": "get", "path": "t/x""#

    #expect(
      try Self.allows("match /t/x { allow get: if \(condition); }", documents: documents, get)
    )
    #expect(
      try !Self.allows("match /t/x { allow get: if !(\(condition)); }", documents: documents, get)
    )
  }

  @Test("A user has an id, claims and the standard token fields; an unauthenticated caller is null")
  func users() throws {
    let rule = { (condition: String) -> String in
      "match /t/{id} { allow get: if \(condition); }"
    }
    let get = #""method": "get", "path": "t/x""#
    let alice = #""auth": {"uid": "alice", "token": {"admin": true}}, "#

    #expect(try Self.allows(rule("request.auth == null"), get))
    #expect(try Self.allows(rule("request.auth == null"), #""auth": null, "# + get))
    #expect(try !Self.allows(rule("request.auth == null"), alice + get))
    #expect(try Self.allows(rule("request.auth.token.admin"), alice + get))
    #expect(try Self.allows(rule("request.auth.token.sub == request.auth.uid"), alice + get))
    #expect(try !Self.allows(rule("request.auth.token.email == ''"), alice + get))
  }

  @Test("A case has its own time, or the file's")
  func times() throws {
    let rule = "match /t/x { allow get: if request.time == timestamp.date(2026, 1, 1); }"
    let get = #""method": "get", "path": "t/x""#

    #expect(try Self.allows(rule, get))
    #expect(try Self.allows(rule, #""time": "2026-01-01T01:00:00+01:00", "# + get))
    #expect(try !Self.allows(rule, #""time": "2026-01-01T00:00:01Z", "# + get))
    let json = #"{"cases": [{"name": "a", "expect": "deny", \#(get)}]}"#
    let file = try RulesTestFile(json: Array(json.utf8), time: Timestamp(microseconds: 0))
    #expect(try file.run(Self.ruleset(rule)).map(\.isAsExpected) == [true])
  }

  // MARK: Other documents

  @Test("A case's own documents lie over the file's, and null hides one")
  func ownDocuments() throws {
    let rule = "match /t/{id} { allow get: if get(/databases/$(db)/documents/u/a).data.n == 2; }"
    let get = #""method": "get", "path": "t/x""#
    let stored = #"{"u/a": {"n": 2}}"#

    #expect(try Self.allows(rule, documents: stored, get))
    #expect(try !Self.allows(rule, get))
    #expect(try Self.allows(rule, #""documents": {"u/a": {"n": 2}}, "# + get))
    #expect(
      try !Self.allows(rule, documents: stored, #""documents": {"u/a": {"n": 3}}, "# + get)
    )
    #expect(try !Self.allows(rule, documents: stored, #""documents": {"u/a": null}, "# + get))
  }

  @Test("getAfter sees what the request leaves, and get what it found")
  func after() throws {
    let rule = { (call: String) -> String in
      "match /t/{id} { allow write: if \(call); }"
    }
    let update = #""method": "update", "path": "t/x", "data": {"n": 2}"#
    let documents = #"{"t/x": {"n": 1}, "u/a": {"n": 1}}"#
    let other = #", "after": {"u/a": {"n": 5}, "u/b": {}}"#
    let path = "/databases/$(db)/documents/"

    for (condition, isTrue) in [
      ("get(\(path)t/x).data.n == 1", true), ("getAfter(\(path)t/x).data.n == 2", true),
      ("getAfter(\(path)u/a).data.n == 5", true), ("get(\(path)u/a).data.n == 1", true),
      ("existsAfter(\(path)u/b)", true), ("exists(\(path)u/b)", false),
    ] {
      #expect(
        try Self.allows(rule(condition), documents: documents, update + other) == isTrue,
        "\(condition)"
      )
    }
    #expect(
      try !Self.allows(rule("existsAfter(\(path)u/b)"), documents: documents, update)
    )
    let delete = #""method": "delete", "path": "t/x", "after": {"u/a": null}"#
    let gone = "existsAfter(\(path)t/x) || existsAfter(\(path)u/a)"
    #expect(try !Self.allows(rule(gone), documents: documents, delete))
    #expect(try Self.allows(rule("!(\(gone))"), documents: documents, delete))
  }

  // MARK: Queries

  @Test(
    "The operators of a filter prove what they say",
    arguments: [
      (#"["a", "==", 1]"#, "resource.data.a == 1", true),
      (#"["a", "==", 2]"#, "resource.data.a == 1", false),
      (#"["a", "!=", 1]"#, "resource.data.a != 1", true),
      (#"["a", "!=", 2]"#, "resource.data.a != 1", false),
      (#"["a", "<", 1]"#, "resource.data.a < 1", true),
      (#"["a", "<=", 1]"#, "resource.data.a < 1", false),
      (#"["a", "<=", 1]"#, "resource.data.a <= 1", true),
      (#"["a", ">", 1]"#, "resource.data.a > 1", true),
      (#"["a", ">=", 1]"#, "resource.data.a > 1", false),
      (#"["a", ">=", 2]"#, "resource.data.a > 1", true),
      (#"["a", "in", [1, 2]]"#, "resource.data.a <= 2", true),
      (#"["a", "in", [1, 3]]"#, "resource.data.a <= 2", false),
      (#"["a", "not-in", [1, 2]]"#, "resource.data.a != 1", true),
      (#"["a", "not-in", [2]]"#, "resource.data.a != 1", false),
      (#"["a", "array-contains", 1]"#, "1 in resource.data.a", true),
      (#"["a", "array-contains", 2]"#, "1 in resource.data.a", false),
      (#"["a", "array-contains-any", [1]]"#, "1 in resource.data.a", true),
      (#"["a", "array-contains-any", [1, 2]]"#, "1 in resource.data.a", false),
      (
        #"["m.`x y`", "==", {"$timestamp": "2026-01-01T00:00:00Z"}]"#,
        "resource.data.m['x y'] == timestamp.date(2026, 1, 1)", true
      ),
      (#"["b", "in", [1, 2]], ["a", "==", 1]"#, "resource.data.a == 1", true),
      ("", "resource.data.a == 1", false),
    ]
  )
  func filters(filter: String, condition: String, isAllowed: Bool) throws {
    let list = #""method": "list", "path": "t", "query": {"where": [\#(filter)]}"#

    #expect(
      try Self.allows("match /t/{id} { allow list: if \(condition); }", list) == isAllowed
    )
  }

  @Test("request.query contains the query's limit, offset and order")
  func query() throws {
    let rule = { (condition: String) -> String in
      "match /t/{id} { allow list: if \(condition); }"
    }
    let list = { (query: String) -> String in
      #""method": "list", "path": "t", "query": {\#(query)}"#
    }
    let orders = #""orderBy": [["score", "desc"], ["m.a"]]"#

    #expect(try Self.allows(rule("request.query.limit <= 10"), list(#""limit": 10"#)))
    #expect(try !Self.allows(rule("request.query.limit <= 10"), list(#""limit": 11"#)))
    #expect(try Self.allows(rule("request.query.limit == null"), list("")))
    #expect(try Self.allows(rule("request.query.offset == 3"), list(#""offset": 3"#)))
    #expect(try Self.allows(rule("request.query.orderBy.score == 'DESC'"), list(orders)))
    #expect(try Self.allows(rule("request.query.orderBy['m.a'] == 'ASC'"), list(orders)))
    #expect(try !Self.allows(rule("request.query.orderBy.score == 'DESC'"), list("")))
    #expect(try Self.allows(rule("true"), #""method": "list", "path": "t""#))
  }

  @Test("A collection group needs a rule for every depth below the path; a collection does not")
  func collectionGroup() throws {
    let list = #""method": "list", "path": "t""#
    let group = list + #", "query": {"collectionGroup": true}"#
    let below = #""method": "list", "path": "u/a/t", "query": {"collectionGroup": true}"#

    #expect(try Self.allows("match /t/{id} { allow list; }", list))
    #expect(try !Self.allows("match /t/{id} { allow list; }", group))
    #expect(try Self.allows("match /{path=**}/t/{id} { allow list; }", group))
    #expect(try Self.allows("match /u/a/{path=**}/t/{id} { allow list; }", below))
    #expect(try !Self.allows("match /u/b/{path=**}/t/{id} { allow list; }", below))
  }

  // MARK: Mistakes

  @Test(
    "A mistake names the case and the member",
    arguments: [
      (
        #""method": "read", "path": "t/x""#,
        #"method: must be one of get, list, create, update, delete, and is "read""#
      ),
      (
        #""method": 1, "path": "t/x""#,
        "method: must be one of get, list, create, update, delete, and is a number"
      ),
      (#""path": "t/x""#, "method: is missing"),
      (#""method": "get""#, "path: is missing"),
      (
        #""method": "get", "path": "/t/x""#,
        "path: has a slash too many; a path begins with a collection's name"
      ),
      (
        #""method": "get", "path": "t""#,
        "path: must be the path of a document, such as users/alice"
      ),
      (
        #""method": "list", "path": "t/x""#, "path: must be the path of a collection, such as users"
      ),
      (#""method": "get", "path": "t/..""#, #"path: ".." cannot be a part of a path"#),
      (#""method": "get", "path": "t/x", "data": {}"#, "data: has no meaning for get"),
      (#""method": "get", "path": "t/x", "query": {}"#, "query: has no meaning for get"),
      (#""method": "get", "path": "t/x", "after": {}"#, "after: has no meaning for get"),
      (#""method": "delete", "path": "t/x", "merge": {}"#, "merge: has no meaning for delete"),
      (#""method": "list", "path": "t", "merge": {}"#, "merge: has no meaning for list"),
      (#""method": "create", "path": "t/x", "merge": {}"#, "merge: has no meaning for create"),
      (#""method": "create", "path": "t/y""#, "data: is missing"),
      (
        #""method": "create", "path": "t/x", "data": {}"#,
        "path: t/x is among the documents; to write it is an update"
      ),
      (
        #""method": "update", "path": "t/y", "data": {}"#,
        "path: t/y is not among the documents; to write it is a create"
      ),
      (#""method": "update", "path": "t/x""#, "data: or merge is missing"),
      (
        #""method": "update", "path": "t/x", "data": {}, "merge": {}"#,
        "merge: must not stand beside data"
      ),
      (
        #""method": "delete", "path": "t/x", "after": {"t/x": {}}"#,
        "after: must not tell of t/x, which the case writes itself"
      ),
      (#""method": "get", "path": "t/x", "auth": {}"#, "auth.uid: is missing"),
      (#""method": "get", "path": "t/x", "auth": "a""#, "auth: must be an object, and is a text"),
      (#""method": "get", "path": "t/x", "auth": {"uid": ""}"#, "auth.uid: must not be empty"),
      (
        #""method": "get", "path": "t/x", "auth": {"uid": "a", "claims": {}}"#,
        "auth.claims: is none of uid, token"
      ),
      (
        #""method": "get", "path": "t/x", "time": "today""#,
        "time: must be a time as RFC 3339 spells it, such as 2026-01-31T12:00:00Z"
      ),
      (#""method": "get", "path": "t/x", "method": "get""#, "method: is given twice"),
      (
        #""method": "get", "path": "t/x", "documents": {"u": {}}"#,
        "documents.u: is not the path of a document, such as users/alice"
      ),
      (
        #""method": "get", "path": "t/x", "documents": {"u/a": {"b c": [[1]]}}"#,
        #"documents["u/a"]["b c"][0]: a list cannot stand in a list"#
      ),
      (
        #""method": "get", "path": "t/x", "documents": {"u/a": {"__a__": 1}}"#,
        #"documents["u/a"].__a__: is not a name that a field can have"#
      ),
    ]
  )
  func mistakesOfCases(members: String, message: String) {
    let json = """
      {"documents": {"t/x": {}}, "cases": [
        {"name": "good", "expect": "deny", "method": "get", "path": "t/x"},
        {"name": "bad", "expect": "deny", \(members)}]}
      """

    let reported = Self.mistake(in: json)
    // Duplicate members are found before the case's name is read.
    let name = message.hasSuffix("is given twice") ? "" : " (in the case 'bad')"
    #expect(reported == "cases[1].\(message)\(name)")
  }

  @Test(
    "A mistake in a query names its part",
    arguments: [
      (#""limit": 0"#, "limit: must be a whole number from 1 on"),
      (#""offset": -1"#, "offset: must be a whole number from 0 on"),
      (#""select": []"#, "select: is none of where, orderBy, limit, offset, collectionGroup"),
      (#""collectionGroup": 1"#, "collectionGroup: must be true or false, and is a number"),
      (#""where": {}"#, "where: must be a list, and is an object"),
      (
        #""where": [["a", "=="]]"#,
        #"where[0]: must be a field, an operator and a value, such as ["owner", "==", "alice"]"#
      ),
      (
        #""where": [["a", "==", 1], ["a", "=", 1]]"#,
        #"where[1][1]: must be one of ==, !=, <, <=, >, >=, in, not-in, array-contains, "#
          + #"array-contains-any, and is "=""#
      ),
      (
        #""where": [["a b", "==", 1]]"#,
        "where[0][0]: must be a field's name; an unusual one stands in `backticks`"
      ),
      (#""where": [["__name__", "==", 1]]"#, "where[0][0]: filters of __name__ are not known"),
      (#""where": [["a", "in", 1]]"#, "where[0][2]: must be a list, and is a number"),
      (#""where": [["a", "in", []]]"#, "where[0][2]: must have a value at least"),
      (
        #""where": [["a", "in", [1,2,3,4,5,6]], ["b", "in", [1,2,3,4,5,6]]]"#,
        "where[1]: makes more than 30 alternatives of the filter"
      ),
      (
        #""orderBy": [[]]"#,
        #"orderBy[0]: must be a field and asc or desc, such as ["score", "desc"]"#
      ),
      (#""orderBy": [["a", "down"]]"#, #"orderBy[0][1]: must be one of asc, desc, and is "down""#),
    ]
  )
  func mistakesOfQueries(members: String, message: String) {
    let json = """
      {"cases": [
        {"name": "bad", "expect": "deny", "method": "list", "path": "t", "query": {\(members)}}]}
      """

    #expect(Self.mistake(in: json) == "cases[0].query.\(message) (in the case 'bad')")
  }

  @Test(
    "A mistake outside of the cases names its place",
    arguments: [
      ("", "is not JSON: line 1, column 1: an unexpected end; there is no text\n  \n  ^"),
      (
        "{\n  \"cases\": ]}",
        "is not JSON: line 2, column 12: an unexpected character; a value is expected, and texts "
          + "stand in \"quotes\"\n    \"cases\": ]}\n             ^"
      ),
      ("[]", "must be an object, and is a list"),
      ("{}", "cases: is missing"),
      (#"{"cases": [], "case": 1}"#, "case: is none of documents, cases"),
      (#"{"cases": [1]}"#, "cases[0]: must be an object, and is a number"),
      (#"{"cases": [{"expect": "allow"}]}"#, "cases[0].name: is missing"),
      (
        #"{"cases": [{"title": "a"}]}"#,
        "cases[0].title: is none of name, expect, auth, method, path, data, merge, "
          + "query, time, documents, after"
      ),
      (#"{"documents": {"u/a": null}, "cases": []}"#, #"documents["u/a"]: must be an object"#),
      (
        #"{"documents": {"u/a": {"a": {"$date": 1}}}, "cases": []}"#,
        #"documents["u/a"].a.$date: is none of $timestamp, $bytes, $reference, $geopoint, "#
          + #"$integer, $double, $vector"#
      ),
      (
        #"{"documents": {"u/a": {"a": {"$bytes": "?"}}}, "cases": []}"#,
        #"documents["u/a"].a.$bytes: must be a text in base64"#
      ),
      (
        #"{"documents": {"u/a": {"a": {"$reference": "u"}}}, "cases": []}"#,
        #"documents["u/a"].a.$reference: must be the path of a document, such as users/alice"#
      ),
      (
        #"{"documents": {"u/a": {"a": {"$geopoint": [91, 0]}}}, "cases": []}"#,
        #"documents["u/a"].a.$geopoint: must be a latitude and a longitude, such as [52.5, 13.4]"#
      ),
      (
        #"{"documents": {"u/a": {"a": 18446744073709551615}}, "cases": []}"#,
        #"documents["u/a"].a: does not fit in 64 bits; {"$double": …} holds it less exactly"#
      ),
    ]
  )
  func mistakesOfFiles(json: String, message: String) {
    #expect(Self.mistake(in: json) == message)
  }

  @Test("A file without a mistake is taken, even without a case; one that is too large is not")
  func goodFiles() {
    #expect(Self.mistake(in: #"{"cases": []}"#) == nil)
    #expect(Self.mistake(in: #"{"documents": {"u/a": {}}, "cases": []}"#) == nil)
    let large = #"{"cases": []}"# + String(repeating: " ", count: RulesTestFile.bytesMax)
    #expect(Self.mistake(in: large) == "a file of cases can have at most 16777216 bytes")
  }

  // MARK: Terminal output

  /// Returns the output for the decision of the only case.
  private static func shown(
    _ rules: String,
    documents: String = "{}",
    _ members: String
  ) throws -> String {
    let json = """
      {"documents": \(documents), "cases": [{"name": "only", "expect": "allow", \(members)}]}
      """
    let ruleset = try ruleset(rules)
    let results = try RulesTestFile(json: Array(json.utf8)).run(ruleset)
    let result = try #require(results.first)
    return result.decision.text(for: result.method, in: ruleset)
  }

  @Test("A refusal is shown with its rule, what decided, and the values")
  func shownRefusal() throws {
    let text = try Self.shown(
      "match /t/{id} { allow update: if id == 'x' && resource.data.owner\n == request.auth.uid; }",
      documents: #"{"t/x": {"owner": "bob"}}"#,
      #""auth": {"uid": "alice"}, "method": "update", "path": "t/x", "data": {}"#
    )

    #expect(
      text == """
        firestore.rules:4:21 allow update: false
          resource.data.owner == request.auth.uid
            resource.data.owner = 'bob'
            request.auth.uid = 'alice'
        """
    )
  }

  @Test("A failure says why there is no value, and a function where it stands")
  func shownFailure() throws {
    let text = try Self.shown(
      "match /t/{id} { allow get: if isMine(); }\n"
        + "function isMine() { return request.auth.uid == 1; }",
      #""method": "get", "path": "t/x""#
    )

    #expect(
      text == """
        firestore.rules:4:21 allow get: error
          request.auth.uid == 1  (line 5, column 28)
            error: Null value error.
            request.auth.uid = (no value)
        """
    )
  }

  @Test(
    "A permission is one line for the rule that gave it, and no rule at all is reported as well"
  )
  func shownPermission() throws {
    let get = #""method": "get", "path": "t/x""#

    #expect(
      try Self.shown("match /t/{id} { allow read; }", get)
        == "firestore.rules:4:21 allow get: true"
    )
    #expect(
      try Self.shown("match /u/{id} { allow read; }", get)
        == "firestore.rules: no rule for get matches this path"
    )
  }

  @Test("Control characters of a document never reach the terminal")
  func shownControlCharacters() throws {
    let text = try Self.shown(
      "match /t/{id} { allow get: if resource.data.a == 1; }",
      documents: #"{"t/x": {"a": "\u001b[2J\n"}}"#,
      #""method": "get", "path": "t/x""#
    )

    #expect(text.contains(#"resource.data.a = '\u{1B}[2J\n'"#))
    #expect(!text.contains("\u{1B}"))
  }
}
