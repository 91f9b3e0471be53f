/// A regular expression in the syntax of RE2, matched in time linear in the text.
///
/// It stands behind `matches`, `replace` and `split` of security rules, whose patterns are hostile
/// input: nothing backtracks or recurses, and a program has at most
/// 100 000 steps. One match costs at most the product of the steps and the length of the text, in
/// Unicode scalars; replacing and splitting search anew after each match.
///
/// As that can still be much, each search is given how much work it may do. The unit is roughly
/// what one step of the program costs at one place of the text, some nanoseconds.
package struct LinearPattern: Sendable {
  /// Why a search has no result.
  package enum SearchError: Error {
    /// There was more to do than was allowed.
    case tooMuchWork
    /// The template is malformed, names an unknown group, or refers so far into a large pattern's
    /// groups that a search would take too much memory.
    case invalidTemplate
    /// The new text would be longer than it may be.
    case tooLong
  }

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

  /// How many steps the compiled program has.
  package var stepCount: Int { program.instructions.count }

  /// Whether the pattern matches `text` from its start to its end; takes the work from `work`.
  package func matchesWhole(_ text: String, work: inout Int) throws(SearchError) -> Bool {
    if let automaton { return try automaton.matchesWhole(text, in: program, work: &work) }
    let scalars = text.unicodeScalars.map(\.value)
    var machine = SearchMachine(program: program, text: scalars, captureCount: 0, work: work)
    defer { work = machine.work }
    return try machine.matchesWhole()
  }

  /// Replaces all matches in `text` by `template`.
  ///
  /// In the template `$1` and `${name}` stand for groups, `$0` for the match, and a backslash makes
  /// the next character a literal one. As in the official emulator, an empty match may follow
  /// another match at once, and a template is not looked at where nothing matches. The new text may
  /// take `bytesMax` bytes of UTF-8. Takes the work from `work`.
  package func replacingAll(
    in text: String,
    with template: String,
    bytesMax: Int,
    work: inout Int
  ) throws(SearchError) -> String {
    let scalars = text.unicodeScalars.map(\.value)
    var finder = SearchMachine(program: program, text: scalars, captureCount: 2, work: work)
    let found = try finder.firstMatch(from: 0)
    work = finder.work
    guard found != nil else { return text }
    guard let replacement = ReplacementTemplate(template, for: program) else {
      throw .invalidTemplate
    }
    let captureCount = 2 * (replacement.groupMax + 1)
    guard program.instructions.count * captureCount <= Program.captureSlotsMax else {
      throw .invalidTemplate
    }

    var output = ""
    var last = 0
    func append(_ part: ArraySlice<UInt32>) throws(SearchError) {
      // A scalar takes at least one byte, so that nothing much longer is made first.
      guard output.utf8.count + part.count <= bytesMax else { throw .tooLong }
      output.unicodeScalars.append(values: part)
    }
    try forEachMatch(in: scalars, captureCount: captureCount, work: &work) {
      captures throws(SearchError) in
      try append(scalars[last..<captures[0]])
      for part in replacement.parts(for: captures, of: scalars) { try append(part) }
      last = captures[1]
    }
    try append(scalars[last...])
    guard output.utf8.count <= bytesMax else { throw .tooLong }
    return output
  }

  /// The parts of `text` between the matches, without empty ones at the end.
  ///
  /// As in the official emulator, an empty match at the start gives an empty first part, groups add
  /// no parts, and where no part would be left there is one empty part. Takes the work from `work`.
  package func split(_ text: String, work: inout Int) throws(SearchError) -> [String] {
    let scalars = text.unicodeScalars.map(\.value)
    var parts: [String] = []
    var last = 0
    try forEachMatch(in: scalars, captureCount: 2, work: &work) { captures in
      parts.append(String(values: scalars[last..<captures[0]]))
      last = captures[1]
    }
    parts.append(String(values: scalars[last...]))
    while parts.count > 1, parts.last?.isEmpty == true { parts.removeLast() }
    return parts
  }

  private func forEachMatch(
    in scalars: [UInt32],
    captureCount: Int,
    work: inout Int,
    _ body: ([Int]) throws(SearchError) -> Void
  ) throws(SearchError) {
    var machine = SearchMachine(
      program: program,
      text: scalars,
      captureCount: captureCount,
      work: work
    )
    defer { work = machine.work }
    var start = 0
    while start <= scalars.count, let captures = try machine.firstMatch(from: start) {
      try body(captures)
      start = captures[0] == captures[1] ? captures[1] + 1 : captures[1]
    }
  }
}

extension String.UnicodeScalarView {
  /// Appends the scalars with these values, which all are scalars'.
  fileprivate mutating func append(values: ArraySlice<UInt32>) {
    for value in values {
      if let scalar = Unicode.Scalar(value) { append(scalar) }
    }
  }
}

extension String {
  fileprivate init(values: ArraySlice<UInt32>) {
    self.init()
    unicodeScalars.append(values: values)
  }
}
