import RuntimeSupport
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
}
