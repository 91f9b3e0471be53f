import LinearRegex
import Testing

/// Expected results as returned by the official emulator.
@Suite("Replacing and splitting")
struct ReplacingAndSplittingTests {
  @Test(
    "Replaces as the official emulator does",
    arguments: [
      ("abc", "(b)", "[$1]", "a[b]c"), ("abc", "(b)", #"\0\1"#, "a01c"),
      ("abc", "b", #"\$1"#, "a$1c"), ("abc", "b", #"\\"#, #"a\c"#), ("abc", "b", #"\"#, #"a\c"#),
      ("abc", "b", "$", "a$c"), ("abc", "b", "$x", "a$xc"), ("abc", "b", "$0$0", "abbc"),
      ("abc", "(b)", "$12", "ab2c"), ("abc", "z", "$1", "abc"), ("abc", "z", "${", "abc"),
      ("abc", "(?P<n>b)", "<${n}>", "a<b>c"), ("abc", "(?<n>b)", "<${n}>", "a<b>c"),
      ("abc", "(?P<n>z)?b", "<${n}>", "a<null>c"), ("abc", "(z)?b", "<$1>", "a<>c"),
      ("aaa", "a*", "x", "xx"), ("baaac", "a*", "x", "xbxxcx"), ("abc", "", "-", "-a-b-c-"),
      ("", "", "x", "x"), ("aaa", "^a", "b", "baa"), ("aXbX", "X$", "y", "aXby"),
      ("aaa", "a{2}", "x", "xa"), ("😀", ".", "x", "x"), ("banana", "a|an", "<$0>", "b<a>n<a>n<a>"),
      ("banana", "an|a", "<$0>", "b<an><an><a>"), ("aaa", "a+?", "<$0>", "<a><a><a>"),
      ("aaa", "a??", "x", "xaxaxax"), ("aaa", "(?U)a+", "<$0>", "<a><a><a>"),
      ("abc", "(a)|(b)|c", "<$1$2>", "<a><b><>"), ("abab", "(a|b)*", "<$1>", "<b><>"),
      ("ab", "(a|ab)(c|bcd|b*)", "<$1,$2>", "<a,b>"), ("xay", "(|a)*", "<$1>", "<>x<>a<>y<>"),
      ("xay", "(|a)+", "<$0>", "<>x<>a<>y<>"), ("aab", "(a*)*", "<$1>", "<aa><>b<>"),
      ("aab", "(a*)+", "<$1>", "<aa><>b<>"), ("b", "(a|b)??", "<$1>", "<>b<>"),
      ("a\nb", "(?m)^", ">", ">a\n>b"), ("a\nb\n", "(?m)$", "<", "a<\nb<\n<"),
      ("a\nb\n", "$", "<", "a\nb\n<"),
    ]
  )
  func replaces(text: String, pattern: String, template: String, expected: String) throws {
    let regex = try LinearPattern(pattern)

    #expect(try regex.replacingAll(in: text, with: template) == expected)
  }

  @Test(
    "A template that is malformed or names an unknown group is refused",
    arguments: ["$1", "${", "${}", "${n", "${n }", "${n}", "x$9"]
  )
  func refusesTemplate(template: String) throws {
    let regex = try LinearPattern("b")

    #expect(try regex.replacingAll(in: "abc", with: template) == nil)
    #expect(try regex.replacingAll(in: "xyz", with: template) == "xyz")
  }

  @Test("A template may not refer far into the groups of a large pattern")
  func boundsCaptures() throws {
    let regex = try LinearPattern(String(repeating: "(a?)", count: 10_000))

    #expect(try regex.replacingAll(in: "a", with: "$1") == "a")
    #expect(try regex.replacingAll(in: "a", with: "$10000") == nil)
  }

  @Test(
    "Splits as the official emulator does",
    arguments: [
      ("a,b,,c,", ",", ["a", "b", "", "c"]), ("a,b,,c,,,", ",", ["a", "b", "", "c"]),
      (",a", ",", ["", "a"]), (",,,", ",", [""]), ("", ",", [""]), ("", "", [""]),
      ("", "a*", [""]), ("abc", "", ["", "a", "b", "c"]), ("abc", "b*", ["", "a", "", "c"]),
      ("a1b2", "([0-9])", ["a", "b"]), ("a1b2c", "[0-9]", ["a", "b", "c"]),
      ("aXbxc", "(?i)x", ["a", "b", "c"]), ("a.b", ".", [""]), ("a.b", "[.]", ["a", "b"]),
      ("abc", "^", ["", "abc"]), ("abc", "$", ["abc"]), ("abc", "z", ["abc"]),
      ("foobar", #"\b"#, ["", "foobar"]), ("foo bar", #"\b"#, ["", "foo", " ", "bar"]),
      ("aaaa", "aa", [""]),
    ]
  )
  func splits(text: String, pattern: String, expected: [String]) throws {
    let regex = try LinearPattern(pattern)

    #expect(try regex.split(text) == expected)
  }

  @Test("A scalar outside the basic plane is never cut in two, unlike in the official emulator")
  func keepsScalarsWhole() throws {
    let regex = try LinearPattern("")

    #expect(try regex.split("a😀b") == ["", "a", "😀", "b"])
    #expect(try regex.replacingAll(in: "😀😀", with: "-") == "-😀-😀-")
  }

  @Test("A grapheme cluster is several scalars")
  func worksOnScalars() throws {
    let regex = try LinearPattern(".")

    #expect(try regex.replacingAll(in: "e\u{301}\r\n", with: "x") == "xxx\n")
  }

  @Test("What would take too much work, or become too long, is refused before it does")
  func boundsWork() throws {
    let text = String(repeating: "a", count: 20_000)
    let costly = try LinearPattern(".*[a-z]{1,200}!")
    for splits in [false, true] {
      var work = 100_000
      #expect(throws: LinearPattern.SearchError.tooMuchWork) {
        if splits {
          _ = try costly.split(text, work: &work)
        } else {
          _ = try costly.matchesWhole(text, work: &work)
        }
      }
      // The work limit is checked after each position of the text.
      #expect(work > -10_000)
    }

    let letter = try LinearPattern("a")
    var work = Int.max
    #expect(throws: LinearPattern.SearchError.tooLong) {
      try letter.replacingAll(in: text, with: text, bytesMax: 50_000, work: &work)
    }
    #expect(Int.max - work < 1_000_000)
    #expect(try letter.replacingAll(in: "aa", with: "é", bytesMax: 4, work: &work) == "éé")
    #expect(throws: LinearPattern.SearchError.tooLong) {
      try letter.replacingAll(in: "aa", with: "é", bytesMax: 3, work: &work)
    }
  }
}
