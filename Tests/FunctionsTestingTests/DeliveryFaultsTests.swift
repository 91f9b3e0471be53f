import FunctionsTesting
import Testing

@Suite("Delivery faults")
struct DeliveryFaultsTests {
  /// Returns the order in which a chain's events reached their functions.
  private func order(
    _ faults: DeliveryFaults?,
    documents: Int = 6
  ) async throws -> [String] {
    try await Sample.withChain(faults) { suite, _ in
      for id in 1...documents { try await suite.firestore.document("a/\(id)").set([:]) }
      try await suite.settle()
      #expect(try await suite.firestore.collection("d").get().count == documents)
      return suite.runs.map { "\($0.function) \($0.document ?? "")" }
    }
  }

  @Test("The same seed gives the same order, another seed another")
  func reproducible() async throws {
    let first = try await order(DeliveryFaults(seed: 1))
    #expect(try await order(DeliveryFaults(seed: 1)) == first)
    #expect(try await order(DeliveryFaults(seed: 2)) != first)
  }

  @Test("Duplicates alone bring each event two or three times, in order")
  func duplicates() async throws {
    let runs = try await order(DeliveryFaults(seed: 3, reordering: false, drops: false))
    let counts = Dictionary(grouping: runs) { $0 }.mapValues(\.count)
    #expect(counts.count == 18)
    #expect(counts.values.allSatisfy { (2...3).contains($0) })
    #expect(runs.filter { $0.hasPrefix("aTob") } == runs.filter { $0.hasPrefix("aTob") }.sorted())
  }

  @Test("Reordering alone brings each event once, and not in order")
  func reordering() async throws {
    let runs = try await order(DeliveryFaults(seed: 4, duplicates: false, drops: false))
    #expect(Set(runs).count == 18)
    #expect(runs.count == 18)
    #expect(runs.filter { $0.hasPrefix("aTob") } != runs.filter { $0.hasPrefix("aTob") }.sorted())
  }

  @Test("Reordering reaches the events of one document too")
  func withinDocument() async throws {
    var orders: Set<[String]> = []
    for seed in 0..<8 as Range<UInt64> {
      let faults = DeliveryFaults(seed: seed, duplicates: false, drops: false)
      let follow = OnDocumentWritten<FirestoreDocument>("follow", at: "users/{id}") { event in
        event.logger.info("\(event.data.after?.fields["n"] ?? .null)")
      }
      try await withFunctions(follow, deliveryFaults: faults) { suite in
        for number in 1...3 {
          try await suite.firestore.document("users/tina").set(["n": .value(number)])
        }
        try await suite.settle()
        orders.insert(suite.logs.map(\.message))
      }
    }
    #expect(orders.count > 1)
    #expect(orders.allSatisfy { $0.count == 3 })
  }

  @Test("Drops alone lose the first try of some events, which come later and once")
  func drops() async throws {
    let faults = DeliveryFaults(seed: 3, duplicates: false, reordering: false)
    let runs = try await order(faults)
    #expect(Set(runs).count == 18)
    #expect(runs.count == 18)
    #expect(runs != (try await order(DeliveryFaults.inOrder)))
    #expect(runs == (try await order(faults)))
  }

  @Test("Without any fault, events wait for their settling and come in order")
  func inOrder() async throws {
    let runs = try await order(DeliveryFaults.inOrder)
    #expect(runs.prefix(6) == (1...6).map { "aTob a/\($0)" }[...])
    #expect(runs.count == 18)
  }

  /// Creates a function that counts users, idempotently or not.
  private func counting(_ firestore: Firestore, isIdempotent: Bool) -> FunctionsApp {
    FunctionsApp {
      OnDocumentCreated<FirestoreDocument>("count", at: "users/{userId}") { event in
        let total = firestore.document("totals/users")
        guard isIdempotent else {
          try await total.set(["count": .increment(1)], .merge)
          return
        }
        let seen = firestore.document("totals/users/seen/\(try event.params.userId)")
        try await firestore.runTransaction { transaction in
          guard try await !transaction.get(seen).exists else { return }
          try transaction.set(seen, [:])
          try transaction.set(total, ["count": .increment(1)], .merge)
        }
      }
    }
  }

  @Test("A function that is not idempotent is found out by any seed", arguments: UInt64(0)..<5)
  func findsOut(seed: UInt64) async throws {
    for isIdempotent in [true, false] {
      try await withFunctions(
        deliveryFaults: DeliveryFaults(seed: seed),
        { self.counting($0.firestore, isIdempotent: isIdempotent) }
      ) { suite in
        try await suite.firestore.document("users/tina").set([:])
        try await suite.settle()
        let total = try await suite.firestore.document("totals/users").get().fields["count"]
        #expect((total == .integer(1)) == isIdempotent)
      }
    }
  }

  @Test("A failure is tried again by its function's policy, and duplicated only once it succeeded")
  func failures() async throws {
    let faults = DeliveryFaults(seed: 5, reordering: false, drops: false)
    let failing = Sample.failing(2, retry: true)
    try await withFunctions(failing, deliveryFaults: faults) { suite in
      try await suite.firestore.document("users/tina").set([:])
      try await suite.settle()

      let outcomes = suite.runs(of: failing).map(\.outcome)
      #expect(outcomes.prefix(2) == [.failed("it is broken"), .failed("it is broken")])
      #expect(outcomes.dropFirst(2).allSatisfy { $0 == .succeeded })
      #expect((4...5).contains(outcomes.count))
    }
  }

  @Test("A settling that is cancelled leaves its event to the next one")
  func cancelled() async throws {
    let runs = Counter()
    let slow = OnDocumentCreated<FirestoreDocument>("slow", at: "users/{userId}") { _ in
      if runs.next() == 1 { try await Task.sleep(for: .seconds(3600)) }
    }
    try await withFunctions(slow, deliveryFaults: DeliveryFaults(seed: 6)) { suite in
      try await suite.firestore.document("users/tina").set([:])
      await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await suite.settle() }
        await started(slow, in: suite)
        group.cancelAll()
        await #expect(throws: CancellationError.self) { try await group.next() }
      }
      try await suite.settle()
      #expect(try await suite.deliveries().map(\.state) == [.succeeded])
    }
  }
}
