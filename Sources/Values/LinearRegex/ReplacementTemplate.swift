/// The replacement of a match: literal text and references to groups.
///
/// `$1` and `${name}` stand for groups, and a backslash makes the next character literal, as in
/// RE2/J, which the official emulator uses.
struct ReplacementTemplate {
  private enum Part {
    case literal([UInt32])
    case group(Int, isNamed: Bool)
  }

  private var parts: [Part] = []
  /// The highest group that the template refers to; zero is the whole match.
  private(set) var groupMax = 0

  /// Parses a template; nil if it is malformed or names a group that `program` does not have.
  init?(_ template: String, for program: Program) {
    let scalars = template.unicodeScalars.map(\.value)
    var literal: [UInt32] = []
    var index = 0
    while index < scalars.count {
      let scalar = scalars[index]
      guard index + 1 < scalars.count, scalar == "\\" || scalar == "$" else {
        literal.append(scalar)
        index += 1
        continue
      }
      let following = scalars[index + 1]
      if scalar == "\\" {
        literal.append(following)
        index += 2
        continue
      }
      var group: Part?
      switch following {
      case 0x30...0x39:
        index += 1
        guard let number = Self.number(in: scalars, at: &index, max: program.groupCount) else {
          return nil
        }
        group = .group(number, isNamed: false)
        groupMax = max(groupMax, number)
      case "{":
        guard let end = scalars[index...].firstIndex(of: 0x7D) else { return nil }
        var name = String.UnicodeScalarView()
        name.append(contentsOf: scalars[(index + 2)..<end].compactMap(Unicode.Scalar.init))
        guard let number = program.groupNumbers[String(name)] else { return nil }
        group = .group(number, isNamed: true)
        groupMax = max(groupMax, number)
        index = end + 1
      default:
        literal.append(scalar)
        index += 1
      }
      if let group {
        parts.append(.literal(literal))
        parts.append(group)
        literal = []
      }
    }
    parts.append(.literal(literal))
  }

  /// Consumes the longest number that is a valid group, with at least one digit.
  private static func number(in scalars: [UInt32], at index: inout Int, max: Int) -> Int? {
    var value = Int(scalars[index] - 0x30)
    index += 1
    while index < scalars.count, (0x30...0x39).contains(scalars[index]) {
      let longer = value * 10 + Int(scalars[index] - 0x30)
      if longer > max { break }
      value = longer
      index += 1
    }
    return value <= max ? value : nil
  }

  /// Returns the parts that replace one match.
  func parts(for captures: [Int], of text: [UInt32]) -> [ArraySlice<UInt32>] {
    parts.map { part in
      switch part {
      case .literal(let literal): return literal[...]
      case .group(let number, let isNamed):
        let start = captures[2 * number]
        let end = captures[2 * number + 1]
        if start >= 0, end >= 0 { return text[start..<end] }
        // RE2/J appends Java's null for a named group that did not take part in the match.
        return isNamed ? Self.null[...] : []
      }
    }
  }

  private static let null = "null".unicodeScalars.map(\.value)
}
