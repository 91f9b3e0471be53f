/// A set of numbers from 0 to 63, for the fields of a schedule.
struct NumberSet: Sendable, Hashable {
  private var bits: UInt64 = 0

  init(_ numbers: some Sequence<Int> = []) {
    for number in numbers { insert(number) }
  }

  var isEmpty: Bool { bits == 0 }

  func contains(_ number: Int) -> Bool { bits & (1 << UInt64(number)) != 0 }

  mutating func insert(_ number: Int) { bits |= 1 << UInt64(number) }

  /// Returns the smallest number that is at least `bound`.
  func first(from bound: Int) -> Int? {
    guard bound < 64 else { return nil }
    let rest = bits >> UInt64(bound)
    return rest == 0 ? nil : bound + rest.trailingZeroBitCount
  }
}
