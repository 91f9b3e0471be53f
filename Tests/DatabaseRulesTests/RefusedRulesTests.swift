import DatabaseModel
import JSONText
import Testing

@testable import DatabaseRules

@Suite("Rules that are refused")
struct RefusedRulesTests {
  private func error(_ text: String) -> String {
    do {
      _ = try DatabaseRuleset(parsing: text)
      return "accepted"
    } catch {
      return error.description
    }
  }

  @Test(
    "A file names its first error and the place",
    arguments: [
      ("{}", "1:2: Expected 'rules' property."),
      ("{ }", "1:3: Expected 'rules' property."),
      ("{\n  \"x\": {}\n}", "2:3: Expected 'rules' property."),
      (#"{"rules":{},"x":1}"#, "1:13: Expected 'rules' property."),
      (#"{"rules":{},"rules":{}}"#, "1:13: Duplicate key 'rules'."),
      ("[]", "1:1: Expected '{'."), ("7", "1:1: Expected '{'."),
      (#"{"rules":true}"#, "1:10: Expected '{'."),
      ("{\n  \"rules\": {\n    \"//\": \"a comment\"\n  }\n}", "3:11: Expected '{'."),
      (#"{"rules":{"a":null}}"#, "1:15: Expected '{'."),
      (#"{"rules":{".read":7}}"#, "1:19: Expected a string or a boolean."),
      (#"{"rules":{".read":null}}"#, "1:19: Expected a string or a boolean."),
      (#"{"rules":{".reed":true}}"#, "1:11: Unknown rule '.reed'."),
      (#"{"rules":{".read":true,".read":true}}"#, "1:24: Duplicate key '.read'."),
      (
        #"{"rules":{"a/b":{}}}"#,
        "1:11: Invalid key 'a/b'. Key value can't be empty or contain $ # [ ] / or ."
      ),
      (
        #"{"rules":{"":{}}}"#,
        "1:11: Invalid key ''. Key value can't be empty or contain $ # [ ] / or ."
      ),
      (#"{"rules":{"$":{}}}"#, "1:11: Invalid variable name '$'."),
      (#"{"rules":{"$a-b":{}}}"#, "1:11: Invalid variable name '$a-b'."),
      (#"{"rules":{"$a":{},"$b":{}}}"#, "1:19: A level can have only one $ variable."),
      (
        #"{"rules":{"$a":{"x":{"$a":{}}}}}"#,
        "1:22: Variable '$a' is already used by a level above."
      ),
      (#"{"rules":{".indexOn":7}}"#, "1:22: Expected a string or an array of strings."),
      (#"{"rules":{".indexOn":["a",7]}}"#, "1:27: Expected a string or an array of strings."),
      (#"{"rules":{".indexOn":""}}"#, "1:22: Invalid index ''."),
      (#"{"rules":{".indexOn":"a.b"}}"#, "1:22: Invalid index 'a.b'."),
      (#"{"rules":{".read":true,}}"#, "1:24: Syntax error: an unexpected character."),
      (#"{"rules":{".read":true"#, "1:23: Syntax error: an unexpected end."),
      (#"{"rules":{".read":"true"#, "1:19: Syntax error: a string without an end."),
      ("{ /* \"rules\"", "1:3: Unterminated comment."), ("{ /*/", "1:3: Unterminated comment."),
      ("{ // }", "1:7: Syntax error: an unexpected end."),
      ("", "1:1: Syntax error: an unexpected end."),
      ("{\"rules\":{}} x", "1:14: Syntax error: an unexpected character."),
      (#"{"rules":{"a":{".write":"x"}}}"#, "1:26: Unknown variable 'x'."),
      (#"{"rules":{"é":{".write":"x"}}}"#, "1:26: Unknown variable 'x'."),
      ("{\"rules\":{\n\".write\":\"true &&\n  x\"}}", "3:3: Unknown variable 'x'."),
      (#"{"rules":{".write":"\"a\" == \u0041x"}}"#, "1:30: Unknown variable 'Ax'."),
      (#"{"rules":{".write":"'\ud83d\ude00é' == x"}}"#, "1:40: Unknown variable 'x'."),
    ]
  )
  func file(_ text: String, _ expected: String) {
    #expect(error(text) == expected)
  }

  @Test(
    "An expression names its first error and the column in it",
    arguments: [
      ("", 0, "Unexpected end of expression."), ("1 <", 3, "Unexpected end of expression."),
      ("true &&", 7, "Unexpected end of expression."), ("(true", 5, "Expected ')'."),
      ("true)", 4, "Syntax error: an unexpected ')'."), ("true ? true", 11, "Expected ':'."),
      ("true true", 5, "Syntax error: an unexpected 'true'."),
      ("var foo = 8", 0, "Unknown variable 'var'."),
      ("true; true", 4, "Syntax error: an unexpected ';'."),
      ("root = 5", 5, "Rule expressions may not contain operator =."),
      ("true & true", 5, "Rule expressions may not contain operator &."),
      ("true | true", 5, "Rule expressions may not contain operator |."),
      ("(2**2) == 4", 3, "Syntax error: an unexpected '*'."),
      ("+1 == 1", 0, "Syntax error: an unexpected '+'."),
      ("true #", 5, "Syntax error: an unexpected '#'."),
      ("typeof auth == 'x'", 0, "Unknown variable 'typeof'."),
      ("'uid' in auth", 6, "Syntax error: an unexpected 'in'."),
      ("'abc == 1", 0, "Syntax error: a string without an end."),
      ("'abc\\", 4, "Syntax error: a string without an end."),
      ("'\\u12' == ''", 1, "Syntax error: an invalid escape."),
      ("1e == 1", 0, "Syntax error: an invalid number."),
      ("1e999 > 1", 0, "Syntax error: an invalid number."),
      ("1x == 1", 0, "Syntax error: an invalid number."),
      ("''.matches(/a)", 11, "Syntax error: a regular expression without an end."),
      ("''.matches(/a\\", 11, "Syntax error: a regular expression without an end."),
      ("7", 0, "Rule expression must be boolean."),
      ("'foo'", 0, "Rule expression must be boolean."),
      ("null", 0, "Rule expression must be boolean."),
      ("auth", 0, "Rule expression must be boolean."),
      ("data", 0, "Rule expression must be boolean."),
      ("data.val()", 0, "Rule expression must be boolean."),
      ("auth.admin", 0, "Rule expression must be boolean."),
      ("query", 0, "Rule expression must be boolean."),
      ("true ? 7 : true", 0, "Rule expression must be boolean."),
      ("/a/", 0, "Rule expression must be boolean."),
      ("['a']", 0, "Rule expression must be boolean."),
      ("auth && true", 0, "Left operand of && must be boolean."),
      ("true && data.val()", 8, "Right operand of && must be boolean."),
      ("true || false || 1", 17, "Right operand of || must be boolean."),
      ("1 || true", 0, "Left operand of || must be boolean."),
      ("!auth.x", 1, "Operand of ! must be boolean."), ("!1", 1, "Operand of ! must be boolean."),
      ("-'a' == 1", 1, "Operand of - must be a number."),
      ("data.val() ? true : false", 0, "Condition of ? must be boolean."),
      ("1 < true", 4, "Invalid < expression: right operand is not a number or string."),
      ("data.val() >= true", 14, "Invalid >= expression: right operand is not a number or string."),
      ("data > 1", 0, "Invalid > expression: left operand is not a number or string."),
      ("1 < 'a'", 0, "Invalid < expression: left and right operands differ in type."),
      (
        "data != null", 0,
        "Invalid != expression: left operand is not a number, boolean, string or null."
      ),
      (
        "null === query", 9,
        "Invalid === expression: right operand is not a number, boolean, string or null."
      ),
      (
        "['a'] == null", 0,
        "Invalid == expression: left operand is not a number, boolean, string or null."
      ),
      (
        "1 == /a/", 5,
        "Invalid == expression: right operand is not a number, boolean, string or null."
      ),
      ("1 + true == 2", 4, "Invalid + expression: right operand is not a number or string."),
      ("null + 'a' == ''", 0, "Invalid + expression: left operand is not a number or string."),
      ("'a' - 1 == 0", 0, "Invalid - expression: left operand is not a number."),
      ("1 * 'a' == 0", 4, "Invalid * expression: right operand is not a number."),
      ("1 / null == 0", 4, "Invalid / expression: right operand is not a number."),
      ("data % 2 == 0", 0, "Invalid % expression: left operand is not a number."),
      ("skies == 'blue'", 0, "Unknown variable 'skies'."),
      ("$z == 'a'", 0, "Unknown variable '$z'."),
      ("data.numChildren() > 0", 5, "No such method/property 'numChildren'."),
      ("data.key == 'a'", 5, "No such method/property 'key'."),
      ("data.val().foo == 1", 11, "No such method/property 'foo'."),
      ("auth.foo.bar() == 1", 9, "No such method/property 'bar'."),
      ("auth.val() == 1", 5, "No such method/property 'val'."),
      ("'a'.trim() == 'a'", 4, "No such method/property 'trim'."),
      ("now.foo == 1", 4, "No such method/property 'foo'."),
      ("query.foo == 1", 6, "No such method/property 'foo'."),
      ("root['foo']() == true", 4, "No such method/property 'foo'."),
      ("root['exi' + 'sts']()", 4, "Invalid property access."),
      ("root[$x]()", 4, "Invalid property access."),
      ("data.val()[$x] == 1", 10, "Invalid property access."),
      ("auth.foo[$x]()", 8, "Invalid property access."),
      ("auth[true] == 1", 4, "Invalid property access."),
      ("data.val()['k'] == 1", 10, "No such method/property 'k'."),
      ("data.exists == true", 5, "Type error: 'exists' is a method, which needs ()."),
      ("'a'.contains == true", 4, "Type error: 'contains' is a method, which needs ()."),
      ("'a'.length() == 1", 4, "Type error: Function call on target that is not a function."),
      (
        "query.limitToFirst() == 1", 6,
        "Type error: Function call on target that is not a function."
      ),
      ("auth() == 1", 4, "Type error: Function call on target that is not a function."),
      ("auth.$x == 1", 5, "Expected a name."), ("auth. == 1", 6, "Expected a name."),
      ("data.child() == 1", 10, "method expects 1 arguments, but got 0 instead."),
      ("data.child('a', 'b').exists()", 10, "method expects 1 arguments, but got 2 instead."),
      ("data.exists(1)", 11, "method expects 0 arguments, but got 1 instead."),
      ("'a'.replace('a') == 'a'", 11, "method expects 2 arguments, but got 1 instead."),
      ("'a'.toLowerCase('a') == 'a'", 15, "method expects 0 arguments, but got 1 instead."),
      ("''.matches()", 10, "method expects 1 arguments, but got 0 instead."),
      ("data.child(7).exists()", 11, "method expects argument 1 to be a string, but got number."),
      ("data.hasChild(null)", 14, "method expects argument 1 to be a string, but got null."),
      ("auth.foo.contains(7)", 18, "method expects argument 1 to be a string, but got number."),
      (
        "'a'.replace('a', true) == ''", 17,
        "method expects argument 2 to be a string, but got boolean."
      ),
      ("'a'.matches('/foo/')", 12, "method expects argument 1 to be a regular expression."),
      ("data.hasChildren('a')", 17, "hasChildren takes 1 argument: an array of strings."),
      ("data.hasChildren(['a'], 'b')", 16, "Too many arguments to hasChildren."),
      (
        "data.hasChildren([])", 17,
        "hasChildren got an empty array, expected some strings in there."
      ),
      ("data.hasChildren(['a', 7])", 23, "hasChildren got an array with a non-string value."),
      (
        "''.matches(/a/g)", 14,
        "Invalid flags 'g' of a regular expression; only i is allowed."
      ),
      ("''.matches(/a|/)", 14, "Invalid regular expression: an empty alternative."),
    ]
  )
  func expression(_ text: String, _ column: Int, _ message: String) {
    let start = #"{"rules":{"$x":{".write":""#
    // In JSON, a backslash and a quotation mark of the expression take two columns.
    let escapes = text.prefix(column).count { $0 == "\\" || $0 == "\"" }
    let place = "1:\(start.count + 1 + column + escapes)"
    #expect(error(start + jsonQuoted(text).dropFirst() + "}}}") == "\(place): \(message)")
  }

  @Test("Rules for reading cannot use newData")
  func newData() {
    #expect(
      error(#"{"rules":{".read":"newData.exists()"}}"#) == "1:20: Unknown variable 'newData'."
    )
    #expect(error(#"{"rules":{".validate":"newData.exists()"}}"#) == "accepted")
  }

  @Test("Text that is too large or nested too deeply is refused without harm")
  func bounds() {
    func write(_ expression: String) -> String {
      error(#"{"rules":{".write":\#(jsonQuoted(expression))}}"#)
    }
    func many(_ text: String, _ count: Int = 100_000) -> String {
      String(repeating: text, count: count)
    }
    let deep = "Expressions are nested too deeply."
    #expect(write(many("(") + "true" + many(")")).hasSuffix(deep))
    #expect(write(many("!") + "true").hasSuffix(deep))
    #expect(write(many("-") + "1 == 1").hasSuffix(deep))
    #expect(write(many("true ? true : ", 10_000) + "true").hasSuffix(deep))
    #expect(write(many("1 + ") + "1 == 1").hasSuffix(deep))
    #expect(write(many("1 == ") + "1").hasSuffix(deep))
    #expect(write("root" + many(".parent()") + ".exists()").hasSuffix(deep))
    #expect(write("auth" + many("[auth", 1000)).hasSuffix(deep))
    #expect(
      write("''.matches(/" + many("(") + "a" + many(")") + "/)").contains("nested too deeply")
    )
    #expect(write(many("true && ") + "true") == "accepted")
    #expect(write(many("1 == 1 || ", 50_000) + "true") == "accepted")
    #expect(error(many("[")).contains("nested more than"))
    #expect(error(#"{"rules":"# + many(#"{"a":"#)).contains("nested more than"))
    #expect(error(many(" ", (1 << 20) + 1)) == "1:1: Rules can have at most 1048576 bytes.")
    #expect(error(many("/*", 400_000)).contains("Unterminated comment."))
  }

  @Test("Rules that end anywhere are refused, and rules that lack any character do no harm")
  func damaged() {
    let text = #"""
      // A comment.
      {"rules": {".indexOn": ["a/b", ".value"], "$x": { /* Another. */
        ".read": "auth['uid'].matches(/^[a-z\\d]{2,3}(x|\\/)+$/i) ? root.exists() : !(now > 1.5e3)",
        ".validate": "newData.hasChildren(['\u0041', \"b\"]) && data.val() + '\\x41' != -1 % 2"
      }}}
      """#
    #expect(error(text) == "accepted")
    let characters = Array(text)
    for end in characters.indices {
      #expect(error(String(characters[..<end])) != "accepted")
      _ = error(String(characters[..<end] + characters[(end + 1)...]))
      // A quotation mark and two braces close what is open, so that expressions end early, too.
      _ = error(String(characters[..<end]) + "\"}}}")
    }
  }
}
