import LinearRegex
import Testing

@Suite("Patterns that are refused")
struct PatternErrorTests {
  @Test(
    "Each mistake is reported in RE2's words, with its place",
    arguments: [
      ("[a", "missing closing ]", 0), ("x[]", "missing closing ]", 1),
      ("[[:alpha:]", "missing closing ]", 0),
      ("*a", "no argument for repetition operator", 0),
      ("a|*", "no argument for repetition operator", 2),
      ("(+)", "no argument for repetition operator", 1),
      ("{2}", "no argument for repetition operator", 0),
      ("(?i)*", "no argument for repetition operator", 4),
      ("(?=a)", "invalid perl operator", 0), ("(?!a)", "invalid perl operator", 0),
      ("b(?<=a)", "invalid perl operator", 1), ("(?<!a)", "invalid perl operator", 0),
      ("(?P=n)", "invalid perl operator", 0), ("(?x)", "invalid perl operator", 0),
      ("(?i-)", "invalid perl operator", 0), ("(?--i)", "invalid perl operator", 0),
      ("(?>a)", "invalid perl operator", 0),
      ("(?P<n", "invalid named capture group", 0), ("(?<>a)", "invalid named capture group", 0),
      ("(?P<é>a)", "invalid named capture group", 0),
      ("(?P<n>a)(?<n>a)", "duplicate capture group name", 8),
      (#"(a)\1"#, "invalid escape sequence", 3), (#"a\Z"#, "invalid escape sequence", 1),
      (#"\C"#, "invalid escape sequence", 0), (#"\E"#, "invalid escape sequence", 0),
      (#"\8"#, "invalid escape sequence", 0), (#"\x6"#, "invalid escape sequence", 0),
      (#"\x{110000}"#, "invalid escape sequence", 0), (#"\x{}"#, "invalid escape sequence", 0),
      (#"[a-\d]"#, "invalid escape sequence", 3), (#"[\b]"#, "invalid escape sequence", 1),
      (#"a\"#, "trailing \\ at end of expression", 1),
      (")", "unexpected )", 0), ("a)", "unexpected )", 1),
      ("(", "missing )", 0), ("a(b", "missing )", 1), ("(?i", "missing )", 0),
      ("[b-a]", "invalid character class range", 1),
      ("[[:foo:]]", "invalid character class range", 1),
      (#"\p{greek}"#, "invalid character class range", 0),
      (#"\p{Letter}"#, "invalid character class range", 0),
      (#"\pX"#, "invalid character class range", 0), (#"\p"#, "invalid character class range", 0),
      (#"\p{L"#, "invalid character class range", 0),
      ("a**", "bad repetition operator", 2), ("a*+", "bad repetition operator", 2),
      ("a???", "bad repetition operator", 3), ("a{2}{3}", "bad repetition operator", 4),
      ("a{1001}", "invalid repetition size", 1), ("a{2,1}", "invalid repetition size", 1),
      ("a{99999999999999999999}", "invalid repetition size", 1),
      ("((a{100}){100}){100}", "invalid repetition size", 9),
      ("(a{33}){31}", "invalid repetition size", 7),
      ("((a{0,40})*){40}", "invalid repetition size", 12),
    ]
  )
  func tellsTheMistake(pattern: String, message: String, offset: Int) {
    let error = #expect(throws: PatternError.self) { try LinearPattern(pattern) }

    #expect(error?.message == message)
    #expect(error?.offset == offset)
  }

  @Test("Groups nest a thousand deep and no deeper", arguments: ["(", "(?:", "(?i:", "(?P<n>"])
  func boundsNesting(head: String) throws {
    let depth = 100_000
    let deep = String(repeating: head, count: depth) + String(repeating: ")", count: depth)
    let error = #expect(throws: PatternError.self) { try LinearPattern(deep) }

    let expected = head == "(?P<n>" ? "duplicate capture group name" : "expression nests too deeply"
    #expect(error?.message == expected)
  }

  @Test("A thousand nested loops compile and match")
  func compilesNestedLoops() throws {
    let pattern = String(repeating: "(", count: 1_000) + "a" + String(repeating: ")*", count: 1_000)
    let regex = try LinearPattern(pattern)

    #expect(try regex.matchesWhole("aaa"))
    #expect(try !regex.matchesWhole("ab"))
    #expect(try regex.replacingAll(in: "ab", with: "<$1>") == "<a><>b<>")
  }

  @Test(
    "A program of too many steps is refused",
    arguments: [
      String(repeating: "a", count: 100_001), String(repeating: "a{1000}", count: 101),
      String(repeating: "()", count: 30_000), String(repeating: "|", count: 100_000),
      "(" + String(repeating: "a", count: 1_000) + "){1000}",
    ]
  )
  func boundsSteps(pattern: String) {
    let error = #expect(throws: PatternError.self) { try LinearPattern(pattern) }

    #expect(error?.message == "pattern too large - compile failed")
  }

  @Test("A program just below the bound compiles")
  func compilesLargeProgram() throws {
    let regex = try LinearPattern(String(repeating: "a{1000}", count: 99))

    #expect(try regex.matchesWhole(String(repeating: "a", count: 99_000)))
  }

  @Test("Any short text of special characters is compiled or refused")
  func survivesNoise() {
    let seed: UInt64 = 7
    var random = SplitMix64(state: seed)
    let alphabet = Array("()[]{}*+?|\\^$-,:.aQEpPx1<>=!i0é")
    var compiled = 0
    for _ in 0..<5_000 {
      let length = random.next(below: 12)
      let pattern = String((0..<length).map { _ in alphabet[random.next(below: alphabet.count)] })
      do throws(PatternError) {
        let regex = try LinearPattern(pattern)
        _ = try? regex.matchesWhole("a1")
        compiled += 1
      } catch {
        #expect(error.offset <= pattern.unicodeScalars.count, "\(pattern), seed \(seed)")
      }
    }

    #expect(compiled > 100)
  }
}
