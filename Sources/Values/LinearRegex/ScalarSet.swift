/// The set of scalars of one character class.
///
/// Unicode categories are looked up in the standard library rather than in tables, and other cases
/// of a letter are determined during matching. A bitmap is used for ASCII.
struct ScalarSet {
  /// A named part of a class, such as `\d` or `\p{Lu}`.
  struct Group {
    var members: Members
    var isNegated: Bool
  }

  /// The contents of a named part.
  enum Members {
    case ranges([ClosedRange<UInt32>])
    case categories(UInt32)
  }

  private let ranges: [ClosedRange<UInt32>]
  private let groups: [Group]
  private let isNegated: Bool
  private let ignoresCase: Bool
  private var asciiLow: UInt64 = 0
  private var asciiHigh: UInt64 = 0

  init(ranges: [ClosedRange<UInt32>], groups: [Group], isNegated: Bool, ignoresCase: Bool) {
    self.ranges = Self.merged(ranges)
    self.groups = groups
    self.isNegated = isNegated
    self.ignoresCase = ignoresCase
    for scalar in UInt32(0)..<64 where evaluate(scalar) { asciiLow |= 1 << UInt64(scalar) }
    for scalar in UInt32(64)..<128 where evaluate(scalar) { asciiHigh |= 1 << UInt64(scalar - 64) }
  }

  /// Returns true if the class contains `scalar`.
  func contains(_ scalar: UInt32) -> Bool {
    if scalar < 64 { return asciiLow >> UInt64(scalar) & 1 == 1 }
    if scalar < 128 { return asciiHigh >> UInt64(scalar - 64) & 1 == 1 }
    return evaluate(scalar)
  }

  private func evaluate(_ scalar: UInt32) -> Bool {
    isNegated
      != (holds(scalar) { Self.find($0, in: ranges) }
        || groups.contains { group in
          group.isNegated != holds(scalar) { Self.isMember($0, of: group.members) }
        })
  }

  /// Returns true if `body` holds for `scalar` or, when case is ignored, for another case of it.
  private func holds(_ scalar: UInt32, _ body: (UInt32) -> Bool) -> Bool {
    ignoresCase ? CaseFolding.anyCase(of: scalar, satisfies: body) : body(scalar)
  }

  private static func isMember(_ scalar: UInt32, of members: Members) -> Bool {
    switch members {
    case .ranges(let ranges): find(scalar, in: ranges)
    case .categories(let mask):
      if let value = Unicode.Scalar(scalar) {
        mask & UnicodeNames.mask(of: value.properties.generalCategory) != 0
      } else {
        false
      }
    }
  }

  private static func find(_ scalar: UInt32, in ranges: [ClosedRange<UInt32>]) -> Bool {
    var low = 0
    var high = ranges.count
    while low < high {
      let middle = (low + high) / 2
      if scalar < ranges[middle].lowerBound {
        high = middle
      } else if scalar > ranges[middle].upperBound {
        low = middle + 1
      } else {
        return true
      }
    }
    return false
  }

  private static func merged(_ ranges: [ClosedRange<UInt32>]) -> [ClosedRange<UInt32>] {
    var result: [ClosedRange<UInt32>] = []
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if let last = result.last, range.lowerBound <= last.upperBound {
        let upper = max(last.upperBound, range.upperBound)
        result[result.count - 1] = last.lowerBound...upper
      } else {
        result.append(range)
      }
    }
    return result
  }
}
