import Foundation

/// The rounds of a random test: as many as fit in a time, and no fewer than it needs.
///
/// `HEARTH_RANDOM_SECONDS` is the time, in seconds. Without it there are a few, which find at once
/// what is often wrong; what is seldom wrong is found by the nightly run, which takes minutes.
package struct RandomRounds: Sequence, IteratorProtocol {
  /// The seconds of a usual random test.
  package static let seconds: Double =
    ProcessInfo.processInfo.environment["HEARTH_RANDOM_SECONDS"].flatMap(Double.init) ?? 3

  private let end: ContinuousClock.Instant
  private let roundsMin: Int
  private var round = 0

  /// Creates rounds for `share` times the usual seconds, and at least `roundsMin`.
  package init(share: Double = 1, atLeast roundsMin: Int = 1) {
    end = .now + .seconds(Self.seconds * share)
    self.roundsMin = roundsMin
  }

  /// Returns the number of the next round, from 0; `nil` when the time is over.
  package mutating func next() -> Int? {
    guard round < roundsMin || ContinuousClock.now < end else { return nil }
    defer { round += 1 }
    return round
  }
}
