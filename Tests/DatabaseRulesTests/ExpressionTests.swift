import DatabaseModel
import JSONText
import Testing

@testable import DatabaseRules

@Suite("Expressions of the Realtime Database's rules")
struct ExpressionTests {
  private static let auth: JSONValue = [
    "uid": "alice", "provider": "custom",
    "token": [
      "age": 7, "name": "Alice", "admin": true, "roles": ["editor", "owner"], "levels": [3, 4],
      "firebase": ["sign_in_provider": "custom"],
    ],
  ]

  private static let tree = #"""
    {"a":{"b":{"text":"Hello World","number":7.5,"yes":true,"é":"x","big":1e21,
      "list":["x","y"],"old":{".value":1,".priority":"high"},"empty":"","zero":0}},
     "top":{"alice":{"role":"admin"}}}
    """#

  private func check(_ expression: String, _ expected: Outcome) throws {
    let found = try outcome(expression, auth: Self.auth, data: Self.tree, newData: Self.tree)
    #expect(found == expected, "\(expression) \(found), and should be \(expected)")
  }

  @Test(
    "An operator has its value",
    arguments: [
      "1 < 2", "2 <= 2", "3 > 2", "2 >= 2", "1 == 1", "1 === 1.0", "1 != 2", "1 !== 2",
      "'a' < 'b'", "'a' <= 'a'", "'B' < 'a'", "'b' > 'a'", "'b' >= 'b'", "'' < 'a'",
      "1 + 2 == 3", "3 - 1 == 2", "3 * 4 == 12", "7 / 2 == 3.5", "7 % 4 == 3", "-7 % 4 == -3",
      "1 + 2 * 3 == 7", "(1 + 2) * 3 == 9", "10 - 2 - 3 == 5", "-2 == 0 - 2", "2 - -2 == 4",
      "!false", "!!true", "!(1 > 2)", "true && true", "false || true", "true || false && false",
      "true ? true : false", "false ? false : true", "(1 > 2 ? 3 : 4) == 4",
      "false ? false : false ? false : true",
      "'a' + 'b' == 'ab'", "'a' + 1 == 'a1'", "1 + 'a' == '1a'", "1 + 2 + 'a' == '3a'",
      "'' + 1.5 == '1.5'", "'' + (0.1 + 0.2) == '0.30000000000000004'", "'' + 1e21 == '1e+21'",
      "'' + 1e-7 == '1e-7'", "'' + 123456789012345680000 == '123456789012345680000'",
      "'' + 0.000001 == '0.000001'", "'' + -0.5 == '-0.5'", "'' + 1/0 == 'NaN'",
      "'' + 1e300 * 1e300 == 'Infinity' || true", "'' + (1 - 1) == '0'",
      "'' + 1.25e25 == '1.25e+25'",
      "!(1/0 > 2)", "!(1/0 < 2)", "1/0 != 1/0", "null == null", "null === null",
      "'1' != 1", "true != 1", "null != false", "null != 0", "'x' != null",
      "1 == 1 == true", "1.5e1 == 15", ".5 == 0.5", "5. == 5", "'\\u0041\\x42' == 'AB'",
      "'it\\'s' == \"it's\"", "'a\\nb'.length == 3", "\"x\" == 'x'",
    ]
  )
  func operators(_ expression: String) throws {
    try check(expression, .isTrue)
  }

  @Test(
    "A variable has its value",
    arguments: [
      "now == 1000", "$x == 'a'", "$y == 'b'", "auth != null", "auth.uid == 'alice'",
      "auth.token.age + 1 == 8", "auth.token.admin == true", "auth['uid'] == 'alice'",
      "auth.token['name'] == 'Alice'", "auth['to' + 'ken']['name'] == 'Alice'",
      "auth.token.roles[0] == 'editor'", "auth.token.levels[1] == 4", "auth.token.roles[2] == null",
      "auth.token.firebase.sign_in_provider == 'custom'", "auth.none == null",
      "auth.none.deeper.still == null", "auth.uid.length == 5", "auth.uid.contains('lic')",
      "auth.uid['contains']('lic')", "auth.token.name.toLowerCase() == auth.uid",
      "root.child('top').child(auth.uid).child('role').val() == 'admin'",
      "root.child('top/' + auth.uid + '/role').val() == 'admin'",
      "data.parent().parent().child('top').exists()", "data.child($y).exists() == false",
      "root.child($x).child($y).child('yes').val() == true", "data.child('zero').val() == 0",
      "(now > 5 ? data : newData).child('number').val() == 7.5", "auth.uid > 'al'",
    ]
  )
  func variables(_ expression: String) throws {
    try check(expression, .isTrue)
  }

  @Test(
    "A method of snapshots has its value",
    arguments: [
      "data.exists()", "!data.child('none').exists()", "data.child('text').val() == 'Hello World'",
      "data.child('none').val() == null", "data.child('list').val() != null",
      "data.child('list').val() != data.child('list').val()", "data.child('list/0').val() == 'x'",
      "data.child('/list//1/').val() == 'y'", "data.hasChild('text')", "!data.hasChild('none')",
      "data.hasChild('list/1')", "!data.hasChild('')", "!data.child('').exists()",
      "data.hasChildren()", "!data.child('text').hasChildren()",
      "!data.child('none').hasChildren()",
      "data.hasChildren(['text', 'number'])", "!data.hasChildren(['text', 'none'])",
      "data.hasChildren(['list/0'])", "data.child('old').getPriority() == 'high'",
      "data.getPriority() == null", "data.child('none').getPriority() == null",
      "data.child('number').isNumber()", "!data.child('text').isNumber()",
      "data.child('text').isString()", "!data.isString()", "data.child('yes').isBoolean()",
      "!data.child('none').isBoolean()", "data.child('text').parent().child('yes').val() == true",
      "root['exists']()", "root[\"child\"]('a').exists()", "data.child('é').val() == 'x'",
      "!data.child('e\\u0301').exists()", "!data.child('a@b.com').exists()",
      "data.child('a@b.com').val() == null", "!data.hasChild('a.b')", "!data.hasChildren(['a#b'])",
      "!root.child('$').exists()", "data.child('a.b').parent().val() == null",
    ]
  )
  func snapshots(_ expression: String) throws {
    try check(expression, .isTrue)
    if !expression.contains("root") {
      try check(expression.replacing("data", with: "newData"), .isTrue)
    }
  }

  @Test(
    "A method of strings has its value",
    arguments: [
      "'abc'.length == 3", "'😀'.length == 2", "''.length == 0", "'abc'.contains('bc')",
      "!'abc'.contains('d')", "'abc'.contains('')", "'abc'.beginsWith('ab')",
      "!'abc'.beginsWith('b')",
      "'abc'.endsWith('bc')", "!'abc'.endsWith('b')", "!'c'.endsWith('bc')", "'abcb'.endsWith('b')",
      "'a.b.c'.replace('.', '-') == 'a-b-c'", "'aaa'.replace('aa', 'b') == 'ba'",
      "'abc'.replace('x', 'y') == 'abc'", "'abc'.replace('', 'y') == 'abc'",
      "'aabaabaac'.contains('aabaac')", "'ababab'.replace('ab', '') == ''",
      "'ÀB'.toLowerCase() == 'àb'", "'àb'.toUpperCase() == 'ÀB'",
      "data.child('text').val().length == 11", "data.child('text').val().contains('World')",
      "data.child('text').val().toLowerCase().beginsWith('hello')",
      "data.child('empty').val().length == 0", "'x'['contains']('x')",
    ]
  )
  func strings(_ expression: String) throws {
    try check(expression, .isTrue)
  }

  @Test(
    "A false expression is no error",
    arguments: [
      "1 > 2", "auth == null", "auth.uid == 7", "data.child('none').val() == 0", "'1' == 1",
      "auth.token.admin == 'true'", "root.child('none/' + auth.uid).exists()",
      "false && 1 > 'a' == true",
      "true ? false : true", "auth.token.roles == null", "'a' == 'A'", "'e\\u0301' == '\\u00e9'",
    ].filter { !$0.contains("> 'a'") }
  )
  func isFalse(_ expression: String) throws {
    try check(expression, .isFalse)
  }

  @Test(
    "A wrong type is an error, and an alternative does not rescue it",
    arguments: [
      "auth.none > 1", "auth.none < 'a'", "auth.uid > 1", "1 >= auth.uid", "auth.token.admin > 0",
      "data.child('none').val() <= 1", "data.val() > 1", "auth.token > 'a'",
      "auth.none - 1 == 0", "auth.uid * 2 == 0", "2 / auth.uid == 0", "auth.token.admin % 2 == 0",
      "-auth.uid == 0", "-auth.none == 0", "auth.none + 1 == 1", "'a' + auth.none == 'a'",
      "1 + auth.token.admin == 2", "'a' + auth.token.admin == 'atrue'", "'a' + data.val() == ''",
      "auth.none.contains('a')", "auth.token.age.contains('7')", "auth.contains('a')",
      "data.child('none').val().length > 0", "data.val().length > 0",
      "data.child('number').val().length > 0",
      "data.child('none').val().matches(/a/)", "'a'.contains(auth.none)",
      "'a'.beginsWith(auth.none)",
      "'7'.endsWith(auth.token.age)", "'a'.replace(auth.none, 'b') == 'a'",
      "'a'.replace('a', auth.none) == 'a'", "auth.none.toLowerCase() == ''",
      "data.child(auth.none).exists()", "data.child(auth.token.age).exists()",
      "data.hasChild(auth.none)", "data.hasChildren([auth.none])",
      "data.hasChildren(['none', auth.token.age])", "root.parent().exists()",
      "data.parent().parent().parent().exists()", "auth[auth.none] == null",
      "!(auth.none > 1)", "auth.none > 1 ? true : false", "auth.none > 1 && true",
    ]
  )
  func fails(_ expression: String) throws {
    try check(expression, .fails)
  }

  @Test("What is not needed is not evaluated")
  func lazy() throws {
    try check("true || auth.none > 1", .isTrue)
    try check("false && auth.none > 1", .isFalse)
    try check("true ? true : auth.none > 1", .isTrue)
    try check("auth.none > 1 || true", .fails)
  }

  @Test(
    "Members of nobody are null",
    arguments: ["auth == null", "auth.uid == null", "auth.token.a.b == null", "auth.uid !== 'x'"]
  )
  func nobody(_ expression: String) throws {
    #expect(try outcome(expression) == .isTrue)
  }

  @Test(
    "A regular expression matches anywhere, or where its anchors are",
    arguments: [
      ("bar", "/bar/", true), ("xbarx", "/bar/", true), ("foo", "/bar/", false),
      ("BAR", "/bar/", false), ("BAR", "/bar/i", true), ("foo", "/^foo/", true),
      ("xfoo", "/^foo/", false), ("foox", "/foo$/", false), ("xfoo", "/foo$/", true),
      ("foo", "/^foo$/", true), ("foo\n", "/^foo$/", false), ("b", "/^(a|b)$/", true),
      ("ax", "/^a|b$/", true), ("xb", "/^a|b$/", true), ("xa", "/^a|b$/", false),
      ("aab", "/^a{2}b$/", true), ("aaaab", "/^a{2,3}b$/", false), ("aaaab", "/^a{2,}b$/", true),
      ("ac", "/^ab?c$/", true), ("abbc", "/^ab*c$/", true), ("ac", "/^ab+c$/", false),
      ("k-9", "/^[a-z]-[0-9]$/", true), ("K", "/[^A-Z]/", false), ("]", "/^[\\]]$/", true),
      ("a-b", "/^[\\w-]+$/", true), ("a b", "/^\\w\\s\\w$/", true), ("7", "/^\\D$/", false),
      ("{foo}", "/\\{foo}/", true), ("a.b", "/^a\\.b$/", true), ("axb", "/^a\\.b$/", false),
      ("a/b", "/a\\/b/", true), ("a/b", "/a[/]b/", true), ("a\nb", "/a.b/", false),
      ("a\nb", "/a\\sb/", true), ("x", "/()/", nil), ("-", "/^[a-]$/", true),
      ("(a)", "/^\\(a\\)$/", true), ("a", "/^(a|)$/", nil), ("a", "/(^a$|b)/", nil),
      ("a", "/a/g", nil), ("a", "/a/ig", nil), ("a", "/(?:a)/", nil), ("a", "/(?=a)/", nil),
      ("a", "/a*?/", nil), ("a", "/a++/", nil), ("a", "/*a/", nil), ("a", "/(a)\\1/", nil),
      ("a", "/a|/", nil), ("a", "/|a/", nil), ("a", "/a$b/", nil), ("a", "/a^b/", nil),
      ("a", "/[]/", nil), ("a", "/[a/", nil), ("a", "/(a/", nil), ("a", "/a)/", nil),
      ("a", "/[z-a]/", nil), ("a", "/a{3,1}/", nil), ("a", "/a{,3}/", nil), ("a", "/a{1/", nil),
      ("a", "/{1}a/", nil), ("a", "/\\/", nil), ("a", "/\\p{L}/", nil), ("a", "/\\b/", nil),
      ("a", "/[\\d-z]/", false), ("-", "/^[\\d-z]$/", true), ("a", "/$/", nil),
      ("a", "/^$/", false),
      ("", "/^$/", true), ("a", "//", nil), ("a", "/a{1001}/", nil),
    ] as [(String, String, Bool?)]
  )
  func patterns(_ text: String, _ pattern: String, _ expected: Bool?) throws {
    let found = try outcome(
      "data.val().matches(\(pattern))",
      data: #"{"a":{"b":\#(jsonQuoted(text))}}"#
    )
    #expect(found == (expected.map { $0 ? .isTrue : .isFalse } ?? .refused), "\(text) \(pattern)")
  }
}
