import FunctionsTesting
import Testing

@Suite("Issues of checks")
struct IssueTests {
  private let rules = """
    service cloud.firestore {
      match /databases/{database}/documents/notes/{id} { allow get: if request.auth.uid == "tina"; }
    }
    """

  @Test("Every check that fails records an issue at its own line, and the test goes on")
  func ownLine() async throws {
    let hanging = Sample.hanging()
    let nightly = OnSchedule("nightly", schedule: "0 3 * * *") { _ in }
    var first = 0
    var passed = 0
    let issues = await recordedIssues {
      try await withFunctions(hanging, nightly, Sample.greet) { suite in
        try suite.loadRules(rules)
        try await suite.firestore.document("users/tina").set([:])
        await started(Sample.greet, in: suite)
        first = #line
        try await suite.settle(timeout: .milliseconds(1))
        try await suite.clock.advance(by: .seconds(1), timeout: .milliseconds(1))
        try await suite.clock.advance(to: suite.clock.now, timeout: .milliseconds(1))
        try suite.expectRuns([Sample.greet: 3], others: .any)
        try await suite.expectAllowed(as: "tom") { try await $0.document("notes/1").get() }
        try await suite.expectDenied(as: "tina") { try await $0.document("notes/1").get() }
        passed = 1
      }
    }

    #expect(passed == 1)
    #expect(issues.allSatisfy { $0.error == nil })
    #expect(issues.map { $0.sourceLocation?.line } == (1...6).map { first + $0 })
    #expect(Set(issues.map { $0.sourceLocation?.fileID }) == [#fileID])
    let texts = issues.compactMap(\.text)
    #expect(texts.prefix(3).allSatisfy { $0.hasPrefix("Not settled: ") })
    #expect(texts.dropFirst(3).first?.contains("greet ran once, expected 3") == true)
    #expect(
      texts.dropFirst(4).first?.hasPrefix("Refused, but expected to be allowed: get notes/1")
        == true
    )
    #expect(texts.last?.hasPrefix("Allowed, but expected to be refused: get notes/1") == true)
  }

  @Test("A check that passes records nothing and returns what its body returns")
  func passes() async throws {
    try await withFunctions(Sample.greet) { suite in
      try suite.loadRules(rules)
      let count = try await suite.expectAllowed(as: "tina") { firestore in
        _ = try await firestore.document("notes/1").get()
        return 1
      }
      #expect(count == 1)
      let refused = await recordedIssues {
        let none: Int? = try await suite.expectAllowed(as: "tom") { firestore in
          _ = try await firestore.document("notes/1").get()
          return 1
        }
        #expect(none == nil)
      }
      #expect(refused.count == 1)
    }
  }

  @Test("A check that consists of several records their issues at the line of the whole")
  func severalChecks() async throws {
    let sending = OnSchedule("nightly", schedule: "0 3 * * *") { _ in }
    var lines: [Int] = []
    let issues = await recordedIssues {
      try await withFunctions(sending, Sample.failingToo) { suite in
        // The sender's error does not matter here.
        _ = try? await suite.http.send(OutboundRequest(url: "https://api.example/1"))
        lines.append(#line + 1)
        try await suite.runSchedule(sending)
        lines.append(#line + 1)
        try await suite.expectRuns([sending: 2]) {
          _ = try? await suite.http.send(OutboundRequest(url: "https://api.example/2"))
          try await suite.firestore.document("users/tina").set([:])
        }
      }
    }

    #expect(issues.map { $0.sourceLocation?.line } == [lines.first, lines.last, lines.last])
    #expect(issues.first?.text?.contains("GET https://api.example/1") == true)
    #expect(issues.dropFirst().first?.text?.contains("GET https://api.example/2") == true)
    #expect(issues.last?.text?.contains("failsToo ran once (and failed: it is broken)") == true)
  }

  @Test("Outside a test a check throws, so that nothing passes unseen")
  func outsideATest() async throws {
    // A detached task belongs to no test.
    let error = await Task.detached {
      await #expect(throws: FunctionsTestingError.self) {
        try await withFunctions(Sample.greet) { try $0.expectRuns([Sample.greet: 1]) }
      }
    }.value
    #expect(error?.kind == .unexpectedRuns)
  }

  @Test("An error that is no failed check is thrown as it is")
  func otherErrors() async throws {
    struct Stop: Error {}
    try await withFunctions(Sample.greet) { suite in
      await #expect(throws: Stop.self) {
        try await suite.expectAllowed(as: "tom") { _ in throw Stop() }
      }
      await #expect(throws: Stop.self) {
        try await suite.expectDenied(as: "tom") { _ in throw Stop() }
      }
      await #expect(throws: Stop.self) { try await suite.expectRuns([:]) { throw Stop() } }
    }
  }
}
