import FunctionsTesting
import Testing

@Suite("Expected runs")
struct ExpectedRunsTests {
  private func message(_ check: () async throws -> Void) async -> String {
    await recordedIssues(check).map { $0.text ?? "\($0)" }.joined(separator: "\n")
  }

  @Test("A chain that runs as expected passes, and each check counts from zero")
  func passes() async throws {
    try await Sample.withChain { suite, chain in
      try await suite.expectRuns([chain.aTob: 2, chain.bToc: 2, chain.cTod: 2]) {
        for id in 1...2 { try await suite.firestore.document("a/\(id)").set([:]) }
      }
      try suite.expectRuns([:])
      try await suite.firestore.document("b/3").set([:])
      try await suite.settle()
      try suite.expectRuns([chain.bToc: .atLeast(1)], others: .exactly(1))
      try await suite.firestore.document("c/4").set([:])
      try await suite.settle()
      suite.mark()
      try suite.expectRuns([:], others: 0)
    }
  }

  @Test("What the closure returns comes back, and what was pending before is not counted")
  func pendingBefore() async throws {
    try await Sample.withChain(.inOrder) { suite, chain in
      try await suite.firestore.document("a/1").set([:])
      let id = try await suite.expectRuns([chain.cTod: 1]) {
        try await suite.firestore.document("c/2").set([:])
        return 2
      }
      #expect(id == 2)
    }
  }

  @Test("Differences are listed: too many runs, too few, and unexpected ones")
  func differences() async throws {
    try await Sample.withChain { suite, chain in
      func run() async throws {
        try await suite.firestore.document("b/\(suite.runs.count)").set([:])
        try await suite.settle()
      }
      try await run()
      #expect(
        await message { try suite.expectRuns([chain.aTob: 1, chain.bToc: 2]) }
          == "Functions ran otherwise than expected: aTob ran 0 times, expected 1; "
          + "bToc ran once, expected 2; cTod ran once, not expected."
      )
      try await run()
      #expect(
        await message { try suite.expectRuns([:], others: .atLeast(3)) }
          == "Functions ran otherwise than expected: others ran 2 times (bToc ran "
          + "once, cTod ran once), expected at least 3."
      )
      #expect(
        await message { try suite.expectRuns([chain.link("a", "z"): 1]) }
          == "There is no function aToz in this suite; there are: aTob, bToc, cTod."
      )
    }
  }

  @Test("The error of a function that failed is reported")
  func failure() async throws {
    let failing = Sample.failing(2, retry: true)
    try await withFunctions(failing, Sample.failingToo) { suite in
      let reported = await message {
        try await suite.expectRuns([failing: 3]) {
          _ = try await suite.firestore.document("users/tina").set([:])
        }
      }
      #expect(reported.hasSuffix("failsToo ran once (and failed: it is broken), not expected."))
    }
  }
}
