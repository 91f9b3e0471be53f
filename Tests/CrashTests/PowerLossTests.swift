import TestSupport
import Testing

@Suite("Stores through power loss")
struct PowerLossTests {
  @Test("Acknowledged batches are there, and of the rest whole commits without holes")
  func storage() async {
    await Crashes.run(StorageCrashes.self)
  }

  @Test("Acknowledged commits are there whole, and documents, indexes and event log agree")
  func documents() async {
    var indexedQueries = 0
    await Crashes.run(DocumentStoreCrashes.self, atLeast: 10) {
      indexedQueries += $0.indexedQueries
    }

    #expect(indexedQueries > 0)
  }

  @Test("Each acknowledged event is delivered, and again only after a crash; outcomes are kept")
  func deliveries() async {
    await Crashes.run(DeliveryCrashes.self)
  }

  private static let subjects: [any CrashSubject.Type] = [
    StorageCrashes.self, DocumentStoreCrashes.self, DeliveryCrashes.self,
  ]

  @Test("Without syncs the same run finds losses", arguments: subjects)
  func detectsLoss(subject: any CrashSubject.Type) async {
    var generator = SeededGenerator.forTest()
    var finding: (any Error)?
    for _ in 0..<40 where finding == nil {
      do {
        try await subject.init().run(isDurable: false, using: &generator)
      } catch {
        // Lost commits, or a file so damaged that it cannot be read.
        finding = error
      }
    }

    #expect(finding != nil)
  }
}
