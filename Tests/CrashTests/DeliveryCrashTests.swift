import TestSupport
import Testing

@Suite("Deliveries through power loss")
struct DeliveryCrashTests {
  private static let livesMax = 4

  @Test("Each acknowledged event is delivered, and again only after a crash; outcomes are kept")
  func nothingAcknowledgedStaysUndelivered() async {
    await Crashes.run { generator in
      try await DeliveryCrashes(isDurable: true).run(lives: Self.livesMax, using: &generator)
    }
  }

  @Test("Without syncs the same run finds losses")
  func detectsLoss() async {
    var generator = SeededGenerator.forTest()
    var finding: (any Error)?
    for _ in 0..<40 where finding == nil {
      do {
        try await DeliveryCrashes(isDurable: false).run(lives: Self.livesMax, using: &generator)
      } catch {
        // Lost events, or a file so damaged that it cannot be read.
        finding = error
      }
    }

    #expect(finding != nil)
  }
}
