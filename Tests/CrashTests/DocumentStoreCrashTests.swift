import TestSupport
import Testing

@Suite("The document store through power loss")
struct DocumentStoreCrashTests {
  private static let livesMax = 4

  @Test("Acknowledged commits are there whole, and documents, indexes and event log agree")
  func documentsIndexesAndLogAgree() async {
    var indexedQueries = 0
    await Crashes.run(atLeast: 10) { generator in
      let crashes = try DocumentStoreCrashes(isDurable: true)
      try await crashes.run(lives: Self.livesMax, using: &generator)
      indexedQueries += crashes.indexedQueries
    }

    #expect(indexedQueries > 0)
  }

  @Test("Without syncs the same run finds losses")
  func detectsLoss() async {
    var generator = SeededGenerator.forTest()
    var finding: (any Error)?
    for _ in 0..<40 where finding == nil {
      do {
        let crashes = try DocumentStoreCrashes(isDurable: false)
        try await crashes.run(lives: Self.livesMax, using: &generator)
      } catch {
        // Lost commits, or a file so damaged that it cannot be read.
        finding = error
      }
    }

    #expect(finding != nil)
  }
}
