/// A place in a rules file.
package struct SourceRange: Sendable, Hashable {
  /// Counted from 1.
  package var line: Int
  /// In Unicode scalars, counted from 1.
  package var column: Int
  /// Unicode scalars before the place.
  package var offset: Int
  /// The offset of the last scalar that belongs to it.
  package var endOffset: Int
}

/// A rules file by Unicode scalars, which its places count.
struct SourceText: Sendable {
  let name: String
  let scalars: [Unicode.Scalar]
  /// The offset at which each line begins.
  private let lineStarts: [Int]

  init(name: String, content: String) {
    self.name = name
    scalars = Array(content.unicodeScalars)
    var starts = [0]
    for (offset, scalar) in scalars.enumerated() where scalar == "\n" { starts.append(offset + 1) }
    lineStarts = starts
  }

  /// The place from one offset up to, without, another.
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

/// What the compiler says of a rules file.
package struct RulesIssue: Sendable, Hashable, Error {
  /// How bad it is; a file with an error is not taken.
  package enum Severity: String, Sendable {
    case error = "ERROR"
    case warning = "WARNING"
  }

  package var severity: Severity
  package var range: SourceRange
  package var description: String
  /// Whether a name, such as that of a variable, a function or a member, stands for nothing.
  ///
  /// Such rules can be loaded, because the part that uses the name only fails when it is evaluated,
  /// but nobody means them.
  package var isUnknownName = false
}

extension RulesIssue {
  /// `line:column: severity: description`, as compilers write it.
  package var text: String {
    "\(range.line):\(range.column): \(severity.rawValue.lowercased()): \(description)"
  }
}
