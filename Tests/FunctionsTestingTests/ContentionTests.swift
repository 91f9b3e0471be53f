import FunctionsRuntime
import FunctionsTesting
import InvocationContext
import Testing

@Suite("Contention", .timeLimit(.minutes(5)))
struct ContentionTests {
  @Test("Three hundred events that add to one document in transactions all count")
  func counter() async throws {
    try await withFunctions { environment in
      FunctionsApp {
        // On a busy machine this can take longer than a minute.
        OnDocumentCreated<FirestoreDocument>(
          "count",
          at: "things/{id}",
          options: .init(timeout: .seconds(540))
        ) { _ in
          try await environment.firestore.runTransaction { transaction in
            let total = try await transaction.get(environment.firestore.document("totals/things"))
            guard case .integer(let count)? = total["n"] ?? .integer(0) else { return }
            try transaction.set(total.reference, ["n": .value(count + 1)])
          }
        }
      }
    } test: { suite in
      for start in stride(from: 0, to: 300, by: 100) {
        var batch = suite.firestore.batch()
        for id in start..<start + 100 {
          try batch.set(suite.firestore.document("things/\(id)"), [:])
        }
        try await batch.commit()
      }
      try await suite.settle(timeout: .seconds(240))

      #expect(try await suite.firestore.document("totals/things").get()["n"] == .integer(300))
    }
  }

  @Test("Three hundred transactions at once on one document all count, without a function, too")
  func atOnce() async throws {
    let idle = OnRequest("idle") { _ in .text("") }
    try await withFunctions(idle) { suite in
      let counter = suite.firestore.document("totals/all")
      // Without a deadline, a transaction gives up after a minute, which a busy machine may need.
      try await InvocationDeadline.$current.withValue(ContinuousClock.now + .seconds(240)) {
        try await withThrowingDiscardingTaskGroup { group in
          for _ in 0..<300 {
            group.addTask {
              try await suite.firestore.runTransaction { transaction in
                let total = try await transaction.get(counter)
                guard case .integer(let count)? = total["n"] ?? .integer(0) else { return }
                try transaction.set(counter, ["n": .value(count + 1)])
              }
            }
          }
        }
      }
      #expect(try await counter.get()["n"] == .integer(300))
    }
  }
}
