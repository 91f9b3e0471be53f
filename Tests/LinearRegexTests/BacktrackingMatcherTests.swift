import LinearRegex
import Testing

/// A random number generator whose seed reproduces its numbers.
struct SplitMix64 {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }

  mutating func next(below bound: Int) -> Int {
    Int(next() % UInt64(bound))
  }
}

/// A small pattern with a simple backtracking matcher.
indirect enum NaivePattern {
  case letter(Character)
  case any
  case start
  case end
  case sequence(NaivePattern, NaivePattern)
  case choice(NaivePattern, NaivePattern)
  case count(NaivePattern, min: Int, max: Int?, isLazy: Bool)

  /// The pattern's source text.
  var source: String {
    switch self {
    case .letter(let letter): String(letter)
    case .any: "."
    case .start: "^"
    case .end: "$"
    case .sequence(let first, let second): first.source + second.source
    case .choice(let first, let second): "(\(first.source)|\(second.source))"
    case .count(let body, let min, let max, let isLazy):
      "(?:\(body.source)){\(min),\(max.map(String.init) ?? "")}" + (isLazy ? "?" : "")
    }
  }

  /// Calls `then` with the end of each match from `position` on, until it returns true.
  ///
  /// Preferred matches come first.
  func match(_ text: [Character], _ position: Int, then: (Int) -> Bool) -> Bool {
    switch self {
    case .letter(let letter):
      position < text.count && text[position] == letter && then(position + 1)
    case .any: position < text.count && then(position + 1)
    case .start: position == 0 && then(position)
    case .end: position == text.count && then(position)
    case .sequence(let first, let second):
      first.match(text, position) { second.match(text, $0, then: then) }
    case .choice(let first, let second):
      first.match(text, position, then: then) || second.match(text, position, then: then)
    case .count(let body, let min, let max, let isLazy):
      Self.repeated(body, min, max, isLazy, text, position, then: then)
    }
  }

  private static func repeated(
    _ body: NaivePattern,
    _ min: Int,
    _ max: Int?,
    _ isLazy: Bool,
    _ text: [Character],
    _ position: Int,
    then: (Int) -> Bool
  ) -> Bool {
    func more() -> Bool {
      if max == 0 { return false }
      return body.match(text, position) { end in
        // An iteration that consumed nothing is the last one.
        if end == position, min == 0 { return then(end) }
        let left = Swift.max(min - 1, 0)
        return repeated(body, left, max.map { $0 - 1 }, isLazy, text, end, then: then)
      }
    }
    if min > 0 { return more() }
    return isLazy ? then(position) || more() : more() || then(position)
  }

  static func random(_ depth: Int, _ random: inout SplitMix64) -> NaivePattern {
    switch depth == 0 ? random.next(below: 4) : random.next(below: 10) {
    case 0, 1: return .letter("a")
    case 2: return .letter("b")
    case 3: return [.any, .start, .end][random.next(below: 3)]
    case 4, 5, 6: return .sequence(.random(depth - 1, &random), .random(depth - 1, &random))
    case 7: return .choice(.random(depth - 1, &random), .random(depth - 1, &random))
    default:
      let min = random.next(below: 3)
      let max = [nil, min, min + 1, min + 2][random.next(below: 4)]
      let isLazy = random.next(below: 2) == 0
      return .count(.random(depth - 1, &random), min: min, max: max, isLazy: isLazy)
    }
  }
}

@Suite("Against a backtracking matcher")
struct BacktrackingMatcherTests {
  @Test("Both agree on whole texts", arguments: [1, 2, 3] as [UInt64])
  func agreeOnWholeTexts(seed: UInt64) throws {
    var random = SplitMix64(state: seed)
    for _ in 0..<1_000 {
      let pattern = NaivePattern.random(random.next(below: 4), &random)
      let regex = try LinearPattern(pattern.source)
      // A word boundary that never matches forces the general matcher instead of bit sets.
      let general = try LinearPattern("(?:\(pattern.source))|c\\bc")
      for _ in 0..<5 {
        let text = Self.text(&random)
        let expected = pattern.match(text, 0) { $0 == text.count }

        let comment: Comment = "\(pattern.source) on \(String(text)), seed \(seed)"
        #expect(try regex.matchesWhole(String(text)) == expected, comment)
        #expect(try general.matchesWhole(String(text)) == expected, comment)
      }
    }
  }

  @Test("Both find the same first match", arguments: [4, 5, 6] as [UInt64])
  func agreeOnFirstMatch(seed: UInt64) throws {
    var random = SplitMix64(state: seed)
    for _ in 0..<1_000 {
      let pattern = NaivePattern.random(random.next(below: 4), &random)
      let regex = try LinearPattern("(?s)" + "^(.*?)(\(pattern.source))(.*)$")
      for _ in 0..<3 {
        let text = Self.text(&random)
        let expected = Self.firstMatch(of: pattern, in: text) ?? String(text)

        #expect(
          try regex.replacingAll(in: String(text), with: "$1[$2]") == expected,
          "\(pattern.source) on \(String(text)), seed \(seed)"
        )
      }
    }
  }

  private static func firstMatch(of pattern: NaivePattern, in text: [Character]) -> String? {
    for start in 0...text.count {
      var found: Int?
      if pattern.match(
        text,
        start,
        then: {
          found = $0
          return true
        }
      ), let end = found {
        return String(text[..<start]) + "[" + String(text[start..<end]) + "]"
      }
    }
    return nil
  }

  private static func text(_ random: inout SplitMix64) -> [Character] {
    (0..<random.next(below: 7)).map { _ in random.next(below: 3) == 0 ? "b" : "a" }
  }
}
