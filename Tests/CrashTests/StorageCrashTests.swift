import TestSupport
import Testing

@Suite("The storage engine through power loss")
struct StorageCrashTests {
  private static let livesMax = 8

  @Test("What was acknowledged is there, and of the rest whole commits without holes")
  func nothingAcknowledgedIsLost() async {
    await Crashes.run { generator in
      try await StorageCrashes(isDurable: true).run(lives: Self.livesMax, using: &generator)
    }
  }

  @Test("Without syncs the same run finds losses")
  func detectsLoss() async {
    var generator = SeededGenerator.forTest()
    var finding: (any Error)?
    for _ in 0..<40 where finding == nil {
      do {
        try await StorageCrashes(isDurable: false).run(lives: Self.livesMax, using: &generator)
      } catch {
        // Lost commits, or a file so damaged that it cannot be read.
        finding = error
      }
    }

    #expect(finding != nil)
  }
}
