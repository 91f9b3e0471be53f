/// A regular expression in the syntax of RE2, matched in time linear in the text.
///
/// It stands behind `matches`, `replace` and `split` of security rules, whose patterns are hostile
/// input: nothing backtracks or recurses, and a program has at most
/// 100 000 steps. One match costs at most the product of the steps and the length of the text, in
/// Unicode scalars; replacing and splitting search anew after each match.
package struct LinearPattern: Sendable {
  private let program: Program
  private let automaton: PositionAutomaton?

  /// Compiles `pattern`.
  ///
  /// - Parameter pattern: A pattern in the syntax of RE2.
  /// - Throws: What is wrong with the pattern, in the words of RE2.
  package init(_ pattern: String) throws(PatternError) {
    program = try PatternParser.compile(pattern)
    automaton = PositionAutomaton(program)
  }

  /// Whether the pattern matches `text` from its start to its end.
  package func matchesWhole(_ text: String) -> Bool {
    if let automaton { return automaton.matchesWhole(text, in: program) }
    let scalars = text.unicodeScalars.map(\.value)
    var machine = SearchMachine(program: program, text: scalars, captureCount: 0)
    return machine.matchesWhole()
  }

  /// Replaces all matches in `text` by `template`.
  ///
  /// In the template `$1` and `${name}` stand for groups, `$0` for the match, and a backslash makes
  /// the next character a literal one. As in the official emulator, an empty match may follow
  /// another match at once, and a template is not looked at where nothing matches.
  ///
  /// - Returns: The new text; `nil` when the template is malformed, names an unknown group, or
  ///   refers so far into a large pattern's groups that a search would take too much memory.
  package func replacingAll(in text: String, with template: String) -> String? {
    let scalars = text.unicodeScalars.map(\.value)
    var finder = SearchMachine(program: program, text: scalars, captureCount: 2)
    guard finder.firstMatch(from: 0) != nil else { return text }
    guard let replacement = ReplacementTemplate(template, for: program) else { return nil }
    let captureCount = 2 * (replacement.groupMax + 1)
    guard program.instructions.count * captureCount <= Program.captureSlotsMax else { return nil }

    var output: [UInt32] = []
    var last = 0
    forEachMatch(in: scalars, captureCount: captureCount) { captures in
      output += scalars[last..<captures[0]]
      replacement.append(match: captures, of: scalars, to: &output)
      last = captures[1]
    }
    output += scalars[last...]
    return Self.string(output[...])
  }

  /// The parts of `text` between the matches, without empty ones at the end.
  ///
  /// As in the official emulator, an empty match at the start gives an empty first part, groups add
  /// no parts, and where no part would be left there is one empty part.
  package func split(_ text: String) -> [String] {
    let scalars = text.unicodeScalars.map(\.value)
    var parts: [String] = []
    var last = 0
    forEachMatch(in: scalars, captureCount: 2) { captures in
      parts.append(Self.string(scalars[last..<captures[0]]))
      last = captures[1]
    }
    parts.append(Self.string(scalars[last...]))
    while parts.count > 1, parts.last?.isEmpty == true { parts.removeLast() }
    return parts
  }

  private func forEachMatch(
    in scalars: [UInt32],
    captureCount: Int,
    _ body: ([Int]) -> Void
  ) {
    var machine = SearchMachine(program: program, text: scalars, captureCount: captureCount)
    var start = 0
    while start <= scalars.count, let captures = machine.firstMatch(from: start) {
      body(captures)
      start = captures[0] == captures[1] ? captures[1] + 1 : captures[1]
    }
  }

  private static func string(_ scalars: ArraySlice<UInt32>) -> String {
    var result = String.UnicodeScalarView()
    result.append(contentsOf: scalars.lazy.compactMap(Unicode.Scalar.init))
    return String(result)
  }
}
