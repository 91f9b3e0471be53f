import FirestoreClient
import FunctionsTesting
import Testing

@Suite("Snapshots, without a socket")
struct SnapshotTests {
  @Test("A query's listener sees what a function makes of a write, in the query's order")
  func query() async throws {
    try await Sample.withChain { suite, chain in
      let firestore = chain.firestore
      var snapshots = firestore.collection("b").order(by: "from").snapshots().makeAsyncIterator()
      #expect(try await snapshots.next()?.count == 0)

      try await firestore.document("a/1").set(["n": 1])
      try await suite.settle()

      let snapshot = try await snapshots.next()
      #expect(snapshot?.map(\.id) == ["1"])
      #expect(snapshot?.changes.map(\.kind) == [.added])
      #expect(snapshot?.first?["from"] == .string("a"))

      var batch = firestore.batch()
      try batch.set(firestore.document("b/2"), ["from": "A"])
      try batch.update(firestore.document("b/1"), ["from": "z"])
      try await batch.commit()
      let second = try await snapshots.next()
      #expect(second?.map(\.id) == ["2", "1"])
      #expect(second?.changes.map(\.kind) == [.added, .modified])

      try await firestore.document("b/2").delete()
      let third = try await snapshots.next()
      #expect(third?.map(\.id) == ["1"])
      #expect(third?.changes.map(\.document.id) == ["2"])
      #expect(third?.changes.map(\.kind) == [.removed])
    }
  }

  @Test("A document's listener sees it come, change and go")
  func document() async throws {
    try await withFunctions(Sample.greet) { suite in
      let reference = suite.firestore.document("drafts/d")
      var exists: [Bool] = []
      for try await snapshot in reference.snapshots() {
        exists.append(snapshot.exists)
        switch exists.count {
        case 1: try await reference.set(["n": 1])
        case 2: try await reference.update(["n": 2])
        case 3:
          #expect(snapshot["n"] == .integer(2))
          try await reference.delete()
        default: break
        }
        if exists.count == 4 { break }
      }
      #expect(exists == [false, true, true, false])
    }
  }

  @Test("A query that makes no sense throws when it is listened to")
  func invalid() async throws {
    try await withFunctions(Sample.greet) { suite in
      let query = suite.firestore.collection("c")
        .where("a", .in, [Int]())
      let error = await #expect(throws: FirestoreError.self) {
        for try await _ in query.snapshots() {}
      }
      #expect(error?.code == .invalidArgument)
    }
  }
}
