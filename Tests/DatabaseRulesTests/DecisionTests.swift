import DatabaseModel
import JSONText
import Testing

@testable import DatabaseRules

@Suite("Decisions of the Realtime Database's rules")
struct DecisionTests {
  private func rules(_ json: String) throws -> DatabaseRuleset {
    try DatabaseRuleset(parsing: #"{"rules":\#(json)}"#)
  }

  private func canRead(
    _ rules: DatabaseRuleset,
    _ text: String,
    data: String = "null",
    auth: JSONValue = .null
  ) throws -> Bool {
    let request = DatabaseRulesRequest(auth: auth, nowMilliseconds: 0, data: try tree(data))
    return rules.read(try path(text), query: nil, request).isAllowed
  }

  /// Decides about writes of values to paths.
  private func canWrite(
    _ rules: DatabaseRuleset,
    _ changes: KeyValuePairs<String, String>,
    data: String = "null",
    auth: JSONValue = .null
  ) throws -> Bool {
    let before = try tree(data)
    var after = before
    for (text, value) in changes { after.set(try tree(value), at: try path(text)) }
    let request = DatabaseRulesRequest(
      auth: auth,
      nowMilliseconds: 0,
      data: before,
      newData: after
    )
    return rules.write(try changes.map { try path($0.key) }, request).isAllowed
  }

  @Test("The first rule that grants a read counts, and none below the path")
  func readCascade() throws {
    let rules = try rules(
      #"{"a":{".read":true,"b":{".read":false}},"c":{"d":{".read":true}},".read":false}"#
    )
    #expect(try !canRead(rules, "/"))
    #expect(try canRead(rules, "/a"))
    #expect(try canRead(rules, "/a/b"))
    #expect(try canRead(rules, "/a/b/c/d"))
    #expect(try !canRead(rules, "/c"))
    #expect(try canRead(rules, "/c/d"))
    #expect(try !canRead(rules, "/c/e"))
    #expect(try !canRead(rules, "/x"))
  }

  @Test("Rules without any grant refuse")
  func nothing() throws {
    let rules = try rules("{}")
    #expect(try !canRead(rules, "/"))
    #expect(try !canWrite(rules, ["/a": "1"]))
  }

  @Test("A failing rule does not keep a rule below it from granting")
  func errors() throws {
    let rules = try rules(#"{".read":"auth.x > 1","a":{".read":true}}"#)
    #expect(try !canRead(rules, "/"))
    #expect(try canRead(rules, "/a"))
  }

  @Test("The rule of a key wins over that of a variable, which it does not fall back to")
  func wildcard() throws {
    let rules = try rules(#"{"$x":{".read":"$x == 'a'","c":{".read":true}},"b":{"c":{}}}"#)
    #expect(try canRead(rules, "/a"))
    #expect(try !canRead(rules, "/z"))
    #expect(try canRead(rules, "/z/c"))
    #expect(try !canRead(rules, "/b/c"))
  }

  @Test("Snapshots stand at the level of their rule")
  func level() throws {
    let rules = try rules(
      #"""
      {"rooms":{"$room":{".read":"data.child('members').hasChild(auth.uid)",
        "log":{"$n":{".write":"data.parent().parent().child('open').val() == true
          && newData.val() == $n && newData.parent().parent().parent().child($room).exists()"}}}}}
      """#
    )
    let data = #"{"rooms":{"r":{"members":{"alice":true},"open":true,"log":{"0":"0"}}}}"#
    #expect(try canRead(rules, "/rooms/r/log/0", data: data, auth: ["uid": "alice"]))
    #expect(try !canRead(rules, "/rooms/r/log/0", data: data, auth: ["uid": "bob"]))
    #expect(try !canRead(rules, "/rooms/r/log/0", data: data))
    #expect(try canWrite(rules, ["/rooms/r/log/k": #""k""#], data: data))
    #expect(try !canWrite(rules, ["/rooms/r/log/k": #""x""#], data: data))
    #expect(try !canWrite(rules, ["/rooms/s/log/k": #""k""#], data: data))
  }

  @Test("A write needs a grant at its path or above")
  func writeCascade() throws {
    let rules = try rules(#"{"a":{"b":{".write":true},".write":"auth != null"}}"#)
    #expect(try canWrite(rules, ["/a/b": "1"]))
    #expect(try canWrite(rules, ["/a/b/c": "1"]))
    #expect(try !canWrite(rules, ["/a": #"{"b":1}"#]))
    #expect(try canWrite(rules, ["/a": #"{"b":1}"#], auth: ["uid": "x"]))
    #expect(try !canWrite(rules, ["/a/c": "1"]))
    #expect(try !canWrite(rules, ["/": "1"]))
  }

  private static let validated = #"""
    {".write":true,
     "users":{
       ".validate":"newData.hasChildren()",
       "$user":{
         ".validate":"newData.hasChildren(['name'])",
         "name":{".validate":"newData.isString() && newData.val().length < 5"},
         "friends":{"$friend":{".validate":"newData.val() == true"},
           "count":{".validate":"newData.isNumber()"}},
         "$other":{".validate":false}}}}
    """#

  @Test(
    "Validation looks at ancestors, the written node and everything new below it",
    arguments: [
      ("/users/a", #"{"name":"Ann"}"#, true), ("/users/a", #"{"name":7}"#, false),
      ("/users/a", #"{"name":"Annabel"}"#, false), ("/users/a", #"{"nick":"x"}"#, false),
      ("/users/a", #"{"name":"Ann","age":1}"#, false), ("/users/a", "7", false),
      ("/users", #"{"a":{"name":"Ann"},"b":{"name":7}}"#, false),
      ("/users", #"{"a":{"name":"Ann"},"b":{"name":"Bob"}}"#, true), ("/users", "7", false),
      ("/users/a/friends", #"{"b":true}"#, true), ("/users/a/friends", #"{"b":1}"#, false),
      ("/users/a/friends", #"{"count":1,"b":true}"#, true),
      ("/users/a/friends", #"{"count":true}"#, false), ("/users/a/friends/b", "true", true),
      ("/users/a/friends/b", "false", false), ("/users/a/age", "1", false),
      ("/users/new/friends/b", "true", false), ("/elsewhere", "7", true), ("/", "7", true),
      ("/", #"{"users":{"a":{"name":7}}}"#, false), ("/users/a/name/x", "1", false),
      ("/users/a/friends/b/c", "1", false), ("/users/a/old", "1", false),
    ]
  )
  func validate(_ path: String, _ value: String, _ expected: Bool) throws {
    // The stored user is not valid in every part, which only matters where it is written.
    let data = #"{"users":{"a":{"name":"Ann","old":1}}}"#
    #expect(try canWrite(rules(Self.validated), [path: value], data: data) == expected)
  }

  @Test("A deleted node is not validated, but ancestors that remain are")
  func deletes() throws {
    let rules = try rules(Self.validated)
    let data = #"{"users":{"a":{"name":"Ann","old":1},"b":{"name":"Bob"}}}"#
    #expect(try canWrite(rules, ["/users/a/old": "null"], data: data))
    #expect(try canWrite(rules, ["/users/a": "null"], data: data))
    #expect(try canWrite(rules, ["/users": "null"], data: data))
    // The user that remains has no name.
    #expect(try !canWrite(rules, ["/users/a/name": "null"], data: data))
    // Nothing remains of the user.
    #expect(try canWrite(rules, ["/users/b/name": "null"], data: data))
  }

  @Test("A rule that validates does not grant")
  func validateGrantsNothing() throws {
    #expect(try !canWrite(rules(#"{".validate":true}"#), ["/": "1"]))
    #expect(try !canWrite(rules(#"{".write":true,".validate":false}"#), ["/": "1"]))
    #expect(try canWrite(rules(#"{".write":true,".validate":false}"#), ["/": "null"]))
  }

  @Test("An error of a validating rule refuses")
  func validateFails() throws {
    let rules = try rules(#"{".write":true,"n":{".validate":"newData.val() > 1"}}"#)
    #expect(try canWrite(rules, ["/n": "2"]))
    #expect(try !canWrite(rules, ["/n": "1"]))
    #expect(try !canWrite(rules, ["/n": #""2""#]))
  }

  @Test("All locations of an update see the same new data, and one refusal refuses all")
  func update() throws {
    let rules = try rules(
      #"""
      {"a":{".write":"newData.parent().child('b').val() == 2"},
       "b":{".write":"newData.parent().child('a').val() == 1"},
       "c":{".write":false},
       "list":{".write":true,".validate":"newData.child('n').val() == 2","$k":{}}}
      """#
    )
    #expect(try canWrite(rules, ["/a": "1", "/b": "2"]))
    #expect(try !canWrite(rules, ["/a": "1"]))
    #expect(try !canWrite(rules, ["/a": "1", "/b": "2", "/c": "3"]))
    #expect(try canWrite(rules, ["/list/x": "1", "/list/n": "2"]))
    #expect(try !canWrite(rules, ["/list/x": "1", "/list/y": "2"]))
    #expect(try canWrite(rules, [:]))
  }

  @Test("Values of a shared level are not mistaken for those of another path")
  func sharedLevels() throws {
    let rules = try rules(#"{"$x":{".write":"$x == 'a'"},"b":{"$y":{".write":"$y == 'c'"}}}"#)
    #expect(try canWrite(rules, ["/a/1": "1", "/a/2": "2", "/b/c/1": "1"]))
    #expect(try !canWrite(rules, ["/a/1": "1", "/c/2": "2"]))
    #expect(try !canWrite(rules, ["/b/c/1": "1", "/b/d/1": "1"]))
    #expect(try !canWrite(rules, ["/é/1": "1", "/a/1": "1"]))
  }

  @Test("The tree before the write is not the tree after it")
  func before() throws {
    let rules = try rules(
      #"""
      {"n":{".write":"newData.val() == data.val() + 1"},
       "$k":{".write":"!data.exists() && root.child('n').val() == 1"}}
      """#
    )
    #expect(try canWrite(rules, ["/n": "2"], data: #"{"n":1}"#))
    #expect(try !canWrite(rules, ["/n": "3"], data: #"{"n":1}"#))
    #expect(try canWrite(rules, ["/k": "1", "/n": "2"], data: #"{"n":1}"#))
    #expect(try !canWrite(rules, ["/k": "1"], data: #"{"n":1,"k":0}"#))
  }

  @Test("A big write costs what it holds, and rules that look too long refuse")
  func work() throws {
    let count = 20_000
    let children = (0..<count).map { "\"k\($0)\":\($0)" }.joined(separator: ",")
    let wide = try rules(
      #"{".write":true,"$k":{".validate":"newData.isNumber() && newData.val() < 20000"}}"#
    )
    #expect(try canWrite(wide, ["/": "{\(children)}"]))
    #expect(try !canWrite(wide, ["/": "{\(children),\"x\":20000}"]))

    let text = String(repeating: "a", count: 100_000)
    let slow = try rules(
      #"{".write":true,"$k":{".validate":"!root.child('text').val().contains('b')"}}"#
    )
    let data = #"{"text":"\#(text)"}"#
    #expect(try canWrite(slow, ["/x": "1"], data: data))
    #expect(try !canWrite(slow, ["/": "{\(children)}"], data: data))
  }

  @Test("A string that an expression makes has a maximum size")
  func sizes() throws {
    let text = String(repeating: "a", count: 6 << 20)
    let data = #"{"a":{"b":"\#(text)"}}"#
    #expect(try outcome("(data.val() + 'x').length > 0", data: data) == .isTrue)
    #expect(try outcome("(data.val() + data.val()).length > 0", data: data) == .fails)
    #expect(try outcome("data.val().replace('a', 'aa').length > 0", data: data) == .fails)
    #expect(try outcome("data.val().replace('aa', 'a').length > 0", data: data) == .isTrue)
  }

  @Test("Data that cannot be read refuses")
  func unreadable() throws {
    struct BrokenView: DatabaseView {
      struct BrokenError: Error {}
      func leaf(at path: DatabasePath) throws -> DatabaseLeaf? { throw BrokenError() }
      func priority(at path: DatabasePath) throws -> DatabaseLeaf? { throw BrokenError() }
      func exists(at path: DatabasePath) throws -> Bool { throw BrokenError() }
      func forEachChild(
        at path: DatabasePath,
        _ body: (DatabaseKey) throws -> Bool
      ) throws { throw BrokenError() }
    }
    let request = DatabaseRulesRequest(
      auth: .null,
      nowMilliseconds: 0,
      data: BrokenView(),
      newData: BrokenView()
    )
    let reading = try rules(#"{".read":"data.exists() || true"}"#)
    #expect(!reading.read(.root, query: nil, request).isAllowed)
    let writing = try rules(#"{".write":true,"a":{"$x":{".validate":"newData.exists()"}}}"#)
    #expect(!writing.write([try path("/a")], request).isAllowed)
    #expect(!writing.write([try path("/a/b")], request).isAllowed)
    #expect(writing.write([try path("/b")], request).isAllowed)
  }
}
