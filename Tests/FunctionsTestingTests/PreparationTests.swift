import FunctionsTesting
import Testing

@Suite("Preparation in a suite")
struct PreparationTests {
  @FunctionsBuilder
  private var functions: [FunctionDefinition] {
    Sample.greet
    Sample.failingToo
  }

  @Test("What functions share is prepared once, before the test and over its database")
  func beforeTheTest() async throws {
    let preparations = Counter()
    try await withFunctions { environment in
      FunctionsApp {
        functions.prepared {
          preparations.next()
          try await environment.firestore.document("indexes/users").set(["isReady": true])
        }
      }
    } test: { suite in
      #expect(preparations.value == 1)
      #expect(try await suite.firestore.document("indexes/users").get().exists)
      try await suite.firestore.document("users/tina").set([:])
      try await suite.settle()

      #expect(suite.runCount(of: Sample.greet) == 1)
      #expect(preparations.value == 1)
    }
  }

  @Test("What a preparation writes is an event like any other")
  func writes() async throws {
    try await withFunctions { environment in
      FunctionsApp {
        Sample.greet.prepared { try await environment.firestore.document("users/tina").set([:]) }
      }
    } test: { suite in
      try await suite.settle()
      #expect(suite.runs(of: Sample.greet).map(\.document) == ["users/tina"])
    }
  }

  @Test("The error of a preparation comes out, and the test does not begin")
  func fails() async throws {
    await #expect(throws: Sample.Broken.self) {
      try await withFunctions { _ in
        FunctionsApp { functions.prepared { throw Sample.Broken() } }
      } test: { _ in
        Issue.record("the test began")
      }
    }
  }
}
