import LinearRegex
import Testing

@Suite("Matching a whole text")
struct MatchingTests {
  @Test(
    "Each construct takes the one text and refuses the other",
    arguments: [
      // Literals and escapes
      ("abc", "abc", "abcd"), ("", "", "a"), (#"a\.b"#, "a.b", "axb"), (#"\_\-"#, "_-", "-_"),
      (#"\é"#, "é", "e"), (#"\n\t\r\f\v\a"#, "\n\t\r\u{C}\u{B}\u{7}", "ntrfva"),
      (#"\x7A\x{10FFFF}"#, "z\u{10FFFF}", "z"), (#"\141\0"#, "a\0", "a0"),
      (#"\1234"#, "S4", "{4"), (#"\Qa*\E*"#, "a***", "aa"), (#"\Qa|b"#, "a|b", "a"),
      (#"\Qab\E{2}"#, "abb", "abab"),
      // The dot
      ("a.b", "axb", "a\nb"), ("(?s)a.b", "a\nb", "ab"), (".", "é", "e\u{301}"),
      (".", "😀", "😀😀"),
      // Classes
      ("[a-c]", "b", "d"), ("[^a-c]", "\n", "b"), ("[]a]", "]", "["), ("[^]a]", "b", "]"),
      ("[a-]", "-", "b"), ("[-a]", "-", "b"), ("[a-c-e]", "-", "d"), ("[[]", "[", "]"),
      (#"[\]\\]"#, "\\", "a"), (#"[\d-z]"#, "-", "y"), ("[😀-😂]", "😁", "😃"),
      ("[[:alpha:]]", "a", "1"), ("[[:^alpha:]]", "1", "a"), ("[[:word:]]", "_", "-"),
      ("[[:space:]]", "\u{B}", "a"), ("[[:xdigit:][:punct:]]+", "F!", "G"),
      ("[:alpha:]", "p", "b"),
      (#"\d\w\s"#, "1a ", "1a\u{B}"), (#"\D\W\S"#, "a-a", "1-a"), (#"\w"#, "a", "é"),
      (#"[^\d\s]"#, "a", "1"), (#"[\W]"#, "é", "a"),
      // Unicode classes
      (#"\pL"#, "é", "1"), (#"\p{Lu}"#, "É", "é"), (#"\PN"#, "a", "5"), (#"\p{^L}"#, "1", "a"),
      (#"\P{^L}"#, "a", "1"), (#"[\p{Nd}x]"#, "٣", "y"), (#"[^\PL]"#, "a", "1"),
      (#"\p{Greek}"#, "α", "a"), (#"\p{Cyrillic}"#, "ж", "z"), (#"\p{Latin}"#, "ß", "β"),
      (#"\p{Han}"#, "一", "あ"), (#"\p{Hiragana}\p{Katakana}"#, "あア", "アあ"),
      (#"\p{Arabic}\p{Hebrew}"#, "عא", "אع"), (#"\p{Any}"#, "\n", ""),
      (#"\pC"#, "\u{E000}", "\u{378}"),
      // Anchors
      ("^a$", "a", "a\n"), (#"\Aa\z"#, "a", "ba"), ("a|a^b", "a", "ab"),
      ("(?m)a$\n^b", "a\nb", "a\n"), (#"a\b-"#, "a-", "ab"), (#"a\Bb"#, "ab", "a-"),
      (#"é\ba"#, "éa", "éé"),
      // Groups and alternation
      ("(a)(?:b)(?P<n>c)(?<m>d)", "abcd", "abc"), ("a|ab", "ab", "abb"), ("|a", "", "b"),
      ("(a|)b", "b", "a"), ("()a", "a", ""),
      // Flags
      ("(?i)aé", "AÉ", "AE"), ("((?i)a)b", "Ab", "AB"), ("(?i:a)b", "Ab", "AB"),
      ("(?i-s:A.)", "ab", "a\n"), ("(?i)(?-i)A", "A", "a"), ("(?)a", "a", "A"),
      ("(?i)a|B(?-i)|c", "b", "C"),
      // Repetition
      ("a*", "aaa", "b"), ("a+", "a", ""), ("a?", "", "aa"), ("a*?b+?c??", "aab", "aa"),
      ("a{2}", "aa", "a"), ("a{2,}", "aaaa", "a"), ("a{1,3}", "aaa", "aaaa"), ("a{0}", "", "a"),
      ("(ab){2}", "abab", "ab"), ("(a|b){2,3}?", "aba", "abab"), ("^*a", "a", "aa"),
      ("(a*)*", "aa", "b"), ("(a{30}){0,2}", "", "a"), ("(|a)+", "aa", "b"),
      // Braces that are not repetitions
      ("a{,2}", "a{,2}", "aa"), ("a{", "a{", "a"), ("a{01}", "a{01}", "a"), ("{x}", "{x}", "x"),
    ]
  )
  func takesOneAndRefusesTheOther(pattern: String, taken: String, refused: String) throws {
    let regex = try LinearPattern(pattern)

    #expect(try regex.matchesWhole(taken))
    #expect(try !regex.matchesWhole(refused))
  }

  @Test(
    "Case does not count under (?i), by simple folding",
    arguments: [
      ("k", "\u{212A}"), ("\u{212A}", "k"), ("ſ", "S"), ("[a-z]", "ſ"), (#"\w"#, "ſ"), ("ß", "ẞ"),
      ("Σ", "ς"), ("µ", "Μ"), ("Ա", "ա"), ("ǅ", "Ǆ"), ("ᾳ", "ᾼ"), ("ϑ", "ϴ"), (#"\p{Lu}"#, "α"),
      ("ж", "Ж"), ("[^K]", "x"),
    ]
  )
  func foldsCase(pattern: String, text: String) throws {
    let regex = try LinearPattern("(?i)" + pattern)

    #expect(try regex.matchesWhole(text))
  }

  @Test(
    "Some letters have no other case under (?i)",
    arguments: [("i", "İ"), ("ı", "I"), ("[^k]", "\u{212A}"), ("ß", "ss"), (#"\W"#, "ſ")]
  )
  func keepsCase(pattern: String, text: String) throws {
    let regex = try LinearPattern("(?i)" + pattern)

    #expect(try !regex.matchesWhole(text))
  }

  @Test("Large programs and small ones agree", arguments: [10, 63, 64, 65, 300])
  func largeAndSmallAgree(count: Int) throws {
    let regex = try LinearPattern("(?:a{\(count)}|b\\b)")

    #expect(try regex.matchesWhole(String(repeating: "a", count: count)))
    #expect(try !regex.matchesWhole(String(repeating: "a", count: count - 1)))
    #expect(try regex.matchesWhole("b"))
  }

  @Test(
    "Patterns that make others backtrack without end do end",
    arguments: ["(a*)*b", "(a|aa)+$", "(a|a)*b", "(.*)*x", "(a?){20}a{20}b"]
  )
  func hostilePatternsEnd(pattern: String) throws {
    let text = String(repeating: "a", count: 20_000)
    let regex = try LinearPattern(pattern)

    #expect(try regex.matchesWhole(text) == (pattern == "(a|aa)+$"))
    #expect(try regex.replacingAll(in: text, with: "") == (pattern == "(a|aa)+$" ? "" : text))
  }
}
