import Testing

@testable import DatabaseRules

@Suite("Case files of the Realtime Database's rules")
struct TestFileTests {
  private static let rules = #"""
    {"rules":{"chats":{"$id":{
      ".read":"data.child('members').hasChild(auth.uid) && query.limitToLast <= 10",
      ".write":"auth.token.admin == true || data.child('members').hasChild(auth.uid)",
      "at":{".validate":"newData.val() == now"},
      "count":{".validate":"newData.val() == data.val() + 1"}}}}}
    """#

  private func results(_ cases: String, data: String = "null") throws -> [Bool] {
    let file = try DatabaseRulesTestFile(json: Array(#"{"data":\#(data),"cases":\#(cases)}"#.utf8))
    return file.run(try DatabaseRuleset(parsing: Self.rules)).map(\.decision.isAllowed)
  }

  @Test("Cases are asked with their own user, value, query and time")
  func cases() throws {
    let alice = #""expect":"allow","auth":{"uid":"alice"},"path":"/chats/1""#
    let found = try results(
      #"""
      [{"name":"read",\#(alice),"method":"read","query":{"limitToLast":10}},
       {"name":"too much",\#(alice),"method":"read","query":{"limitToLast":11}},
       {"name":"all",\#(alice),"method":"read"},
       {"name":"nobody","expect":"deny","method":"read","path":"/chats/1"},
       {"name":"time",\#(alice),"method":"update","value":{"at":{".sv":"timestamp"}}},
       {"name":"wrong time",\#(alice),"method":"update","value":{"at":5}},
       {"name":"fixed time",\#(alice),"method":"update","value":{"at":5},"time":5},
       {"name":"count",\#(alice),"method":"update",
        "value":{"count":{".sv":{"increment":1}},"a/b":true}},
       {"name":"count twice",\#(alice),"method":"update","value":{"count":9}},
       {"name":"removed",\#(alice),"method":"write","value":null},
       {"name":"other data",\#(alice),"method":"write","value":null,"data":null},
       {"name":"admin","expect":"allow","method":"write","path":"/chats/9","value":1,
        "auth":{"uid":"bob","token":{"admin":true}}}]
      """#,
      data: #"{"chats":{"1":{"members":{"alice":true},"count":3}}}"#
    )
    #expect(
      found == [
        true, false, false, false, true, false, true, true, false, true, false, true,
      ]
    )
  }

  @Test("A case that comes out otherwise is not as expected")
  func expectations() throws {
    let file = try DatabaseRulesTestFile(
      json: Array(
        #"""
        {"cases":[{"name":"a","expect":"deny","method":"read","path":"/chats/1"},
                  {"name":"b","expect":"allow","method":"read","path":"/chats/1"}]}
        """#.utf8
      )
    )
    let results = file.run(try DatabaseRuleset(parsing: Self.rules))
    #expect(results.map(\.isAsExpected) == [true, false])
    #expect(results.map(\.name) == ["a", "b"])
  }

  @Test(
    "A mistake names its place",
    arguments: [
      ("[", "is not JSON"), ("{}", "cases: is missing"), ("[]", "must be an object"),
      (#"{"cases":{}}"#, "cases: must be a list, and is an object"),
      (#"{"cases":[],"x":1}"#, "x: is none of data, cases"),
      (#"{"cases":[],"cases":[]}"#, "cases: is given twice"),
      (#"{"cases":[],"data":{"a.b":1}}"#, "data: cannot be stored"),
      (#"{"cases":[{}]}"#, "cases[0].expect: is missing"),
      (#"{"cases":[{"expect":"yes"}]}"#, "cases[0].expect: must be one of allow, deny"),
      (#"{"cases":[{"expect":"deny","method":"get"}]}"#, "cases[0].method: must be one of"),
      (#"{"cases":[{"expect":"deny","method":"read","path":"a.b"}]}"#, "cases[0].path: is not a"),
      (
        #"{"cases":[{"expect":"deny","method":"read","path":""}]}"#, "cases[0].path: must be a text"
      ),
      (
        #"{"cases":[{"name":"x","expect":"deny","method":"read","path":"/","value":1}]}"#,
        "cases[0].value: has no meaning for read"
      ),
      (
        #"{"cases":[{"name":"x","expect":"deny","method":"write","path":"/"}]}"#,
        "cases[0].value: is missing"
      ),
      (
        #"{"cases":[{"name":"x","expect":"deny","method":"update","path":"/","value":{"a.b":1}}]}"#,
        "cases[0].value.a.b: is not a path"
      ),
      (
        #"{"cases":[{"name":"x","expect":"deny","method":"read","path":"/","auth":{}}]}"#,
        "cases[0].auth.uid: is missing"
      ),
      (
        #"""
        {"cases":[{"name":"x","expect":"deny","method":"read","path":"/",
          "query":{"limitToFirst":0}}]}
        """#,
        "cases[0].query.limitToFirst: must be a whole number"
      ),
      (
        #"""
        {"cases":[{"name":"x","expect":"deny","method":"read","path":"/",
          "query":{"orderBy":"$key","startAt":7}}]}
        """#,
        "cases[0].query.startAt: must be a text"
      ),
    ]
  )
  func mistakes(_ text: String, _ start: String) {
    let error = #expect(throws: DatabaseRulesTestFile.MistakeError.self) {
      try DatabaseRulesTestFile(json: Array(text.utf8))
    }
    #expect(error?.description.hasPrefix(start) == true, "\(error?.description ?? "")")
  }
}
