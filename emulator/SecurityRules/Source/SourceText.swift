/// A range in a rules file.
package struct SourceRange: Sendable, Hashable {
  /// The line, counted from 1.
  package var line: Int
  /// The column in Unicode scalars, counted from 1.
  package var column: Int
  /// The number of Unicode scalars before the range.
  package var offset: Int
  /// The offset of the last scalar in the range.
  package var endOffset: Int
}

/// A rules file as Unicode scalars, in which ranges are counted.
struct SourceText: Sendable {
  let name: String
  let scalars: [Unicode.Scalar]
  /// The offset of the start of each line.
  private let lineStarts: [Int]

  init(name: String, content: String) {
    self.name = name
    scalars = Array(content.unicodeScalars)
    var starts = [0]
    for (offset, scalar) in scalars.enumerated() where scalar == "\n" { starts.append(offset + 1) }
    lineStarts = starts
  }

  /// Returns the range from `start` up to but not including `end`.
  func range(_ start: Int, _ end: Int) -> SourceRange {
    var low = 0
    var high = lineStarts.count
    while high - low > 1 {
      let middle = (low + high) / 2
      if lineStarts[middle] <= start { low = middle } else { high = middle }
    }
    return SourceRange(
      line: low + 1,
      column: start - lineStarts[low] + 1,
      offset: start,
      endOffset: max(start, end - 1)
    )
  }

  func text(_ range: SourceRange) -> String {
    let start = min(range.offset, scalars.count)
    let end = min(range.endOffset + 1, scalars.count)
    var text = String.UnicodeScalarView()
    text.append(contentsOf: scalars[start..<max(start, end)])
    return String(text)
  }
}

/// An error or a warning about a rules file.
package struct RulesIssue: Sendable, Hashable, Error {
  /// The severity of an issue; a file with an error is rejected.
  package enum Severity: String, Sendable {
    case error = "ERROR"
    case warning = "WARNING"
  }

  package var severity: Severity
  package var range: SourceRange
  package var description: String
  /// True if a name, such as a variable, function or member, is unknown.
  ///
  /// Such rules can be loaded, because the part with the name only fails when it is evaluated. They
  /// are still mistakes.
  package var isUnknownName = false
}

extension RulesIssue {
  /// The issue in the format of compilers: `line:column: severity: description`.
  package var text: String {
    "\(range.line):\(range.column): \(severity.rawValue.lowercased()): \(description)"
  }
}
