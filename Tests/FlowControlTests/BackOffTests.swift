import FlowControl
import Testing

@Suite("Back-off")
struct BackOffTests {
  @Test("Each failure doubles the wait up to the bound")
  func backOffDoubles() {
    let backOff = BackOff(initial: .milliseconds(100), maximum: .seconds(1))

    #expect(
      (0...6).map(backOff.delay)
        == [100, 100, 200, 400, 800, 1000, 1000].map { Duration.milliseconds($0) }
    )
    #expect(backOff.delay(afterFailures: .max) == .seconds(1))
  }

  @Test("After its doublings the wait grows by equal steps")
  func growsLinearly() {
    let backOff = BackOff(initial: .seconds(10), maximum: .seconds(300), doublings: 3)

    #expect(
      (1...9).map { backOff.delay(afterFailures: $0) / .seconds(1) }
        == [10, 20, 40, 80, 160, 240, 300, 300, 300]
    )
    #expect(backOff.delay(afterFailures: .max) == .seconds(300))
  }

  @Test("Waits of nothing stay nothing")
  func nothing() {
    let backOff = BackOff(initial: .zero, maximum: .seconds(1), doublings: 1)
    #expect(backOff.delay(afterFailures: .max) == .zero)
  }

  @Test("Chance shortens a wait by its part at most")
  func jitter() {
    let backOff = BackOff(initial: .seconds(4), maximum: .seconds(4), jitter: 0.25)

    #expect(backOff.delay(afterFailures: 1, random: 0) == .seconds(4))
    #expect(backOff.delay(afterFailures: 1, random: 1) == .seconds(3))
  }

  @Test("Whatever its numbers are, a wait is from nothing to the maximum")
  func extremes() {
    let longest = Duration(attoseconds: .max)
    let counts = [Int.min, -1, 0, 1, 30, 31, .max]
    let durations = [Duration(attoseconds: .min), .seconds(-1), .zero, .seconds(1), longest]
    let parts = [0, 1e-300, 0.5, 1, 2, -1, .infinity, .nan]
    for initial in durations {
      for doublings in counts {
        for jitter in parts {
          let backOff = BackOff(
            initial: initial,
            maximum: longest,
            doublings: doublings,
            jitter: jitter
          )
          for failures in counts {
            #expect(backOff.delay(afterFailures: failures) >= .zero)
            #expect(
              parts.allSatisfy { backOff.delay(afterFailures: failures, random: $0) >= .zero }
            )
          }
        }
      }
    }
  }
}
