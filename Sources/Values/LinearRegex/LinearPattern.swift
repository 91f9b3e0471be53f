/// A regular expression in the syntax of RE2, matched in time linear in the length of the text.
///
/// Security rules use it for `matches`, `replace` and `split`, whose patterns are hostile input.
/// Nothing backtracks or recurses, and a program has at most 100 000 steps. One match costs at most
/// the number of steps times the length of the text in Unicode scalars. Replacing and splitting
/// start a new search after each match.
///
/// Because that can still be a lot, each search has a limit on its work. A unit of work is roughly
/// the cost of one program step at one position of the text, some nanoseconds.
package struct LinearPattern: Sendable {
  /// The reason why a search has no result.
  package enum SearchError: Error {
    /// The search needed more work than allowed.
    case tooMuchWork
    /// The template is malformed, names an unknown group, or would need too much memory.
    ///
    /// The memory depends on the size of the pattern and the highest group in the template.
    case invalidTemplate
    /// The new text would exceed the length limit.
    case tooLong
  }

  private let program: Program
  private let automaton: PositionAutomaton?

  /// Compiles a pattern.
  ///
  /// - Parameter pattern: A pattern in the syntax of RE2.
  /// - Throws: A `PatternError` with RE2's own error message.
  package init(_ pattern: String) throws(PatternError) {
    program = try PatternParser.compile(pattern)
    automaton = PositionAutomaton(program)
  }

  /// The number of steps of the compiled program.
  package var stepCount: Int { program.instructions.count }

  /// Returns true if the pattern matches the whole of `text`; subtracts the work done from `work`.
  package func matchesWhole(_ text: String, work: inout Int) throws(SearchError) -> Bool {
    if let automaton { return try automaton.matchesWhole(text, in: program, work: &work) }
    let scalars = text.unicodeScalars.map(\.value)
    var machine = SearchMachine(program: program, text: scalars, captureCount: 0, work: work)
    defer { work = machine.work }
    return try machine.matchesWhole()
  }

  /// Replaces all matches in `text` by `template`.
  ///
  /// In the template, `$1` and `${name}` stand for groups, `$0` stands for the match, and a
  /// backslash makes the next character literal. As in the official emulator, an empty match may
  /// directly follow another match, and the template is not checked if nothing matches. The new
  /// text may have at most `bytesMax` bytes of UTF-8. Subtracts the work done from `work`.
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
      // A scalar takes at least one byte, so this check keeps the output close to the limit.
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

  /// Returns the parts of `text` between the matches, without empty parts at the end.
  ///
  /// As in the official emulator, an empty match at the start produces an empty first part, and
  /// groups add no parts. If no part would be left, the result is one empty part. Subtracts the
  /// work done from `work`.
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
  /// Appends the scalars with the given values, all of which are valid.
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
