import Foundation

/// A random number generator whose seed reproduces its numbers.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// The seed that reproduces these numbers.
  package let seed: UInt64

  /// Creates the generator for `seed`.
  package init(seed: UInt64) {
    self.seed = seed
    state = seed
  }

  /// Creates a generator from `HEARTH_TEST_SEED` or a random seed, and prints the seed.
  ///
  /// Running a failed test again with the printed seed repeats the failure.
  package static func forTest(_ name: String = #function) -> SeededGenerator {
    let given = ProcessInfo.processInfo.environment["HEARTH_TEST_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 0...UInt64(UInt32.max))
    print("\(name): HEARTH_TEST_SEED=\(seed)")
    return SeededGenerator(seed: seed)
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
