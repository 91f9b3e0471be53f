import FirestoreClient
import Foundation
import Testing

/// Runs against a Firestore emulator named by `FIRESTORE_EMULATOR_HOST`; skipped without one.
@Suite(
  "Client against a running emulator",
  .enabled(if: ProcessInfo.processInfo.environment["FIRESTORE_EMULATOR_HOST"] != nil)
)
struct LiveFirestoreTests {
  private let store: Firestore

  init() throws {
    var environment = ProcessInfo.processInfo.environment
    // A separate project, so that each test has an empty database.
    environment["GCLOUD_PROJECT"] = "demo-\(UInt32.random(in: 0...UInt32.max))"
    store = Firestore(try FirestoreSettings(environment: environment))
  }

  private struct Note: Codable, Equatable {
    var text: String
    var stars: Int
    var tags: [String]
    var place: GeoPoint?
    var at: Timestamp
  }

  @Test("What is written is read, changed and deleted")
  func documents() async throws {
    let at = try #require(Timestamp("2024-05-01T10:00:00.123456Z"))
    let note = Note(
      text: "héllo \u{1F9E1}",
      stars: 3,
      tags: ["a"],
      place: GeoPoint(latitude: 1.5, longitude: -2),
      at: at
    )
    let reference = store.collection("notes").document("n 1:é")
    try await reference.create(note)
    let read = try await reference.get().data(as: Note.self)
    #expect(read == note)
    let again = await #expect(throws: FirestoreError.self) { try await reference.create(note) }
    #expect(again?.code == .alreadyExists)

    let result = try await reference.update([
      "stars": .increment(2), "tags": .arrayUnion("b", "a"), "place": .delete,
      "deep.er": "x", "seen": .serverTimestamp,
    ])
    #expect(result.transformResults.contains(.integer(5)))
    try await reference.set(["deep": ["est": 1]], .merge)
    let changed = try await reference.get()
    #expect(changed["stars"] == .integer(5))
    #expect(changed["tags"] == .array([.string("a"), .string("b")]))
    #expect(changed["place"] == nil)
    #expect(changed["deep"] == .map(["er": .string("x"), "est": .integer(1)]))
    guard case .timestamp = changed["seen"] else {
      Issue.record("no server timestamp")
      return
    }

    try await reference.delete(.exists)
    let gone = try await reference.get()
    #expect(!gone.exists)
    let missing = await #expect(throws: FirestoreError.self) {
      try await reference.update(["a": 1])
    }
    #expect(missing?.code == .notFound)
  }

  @Test("Queries narrow, order, page, count and reach across collections")
  func queries() async throws {
    var batch = store.batch()
    for number in 0..<10 {
      let reference = store.collection("rooms").document("r\(number % 2)")
        .collection("seats").document("s\(number)")
      try batch.set(reference, ["n": number, "odd": number % 2])
    }
    try await batch.commit()

    let seats = store.document("rooms/r1").collection("seats")
    #expect(try await seats.where("n", .greaterThan, 3).get().map(\.id) == ["s5", "s7", "s9"])
    #expect(try await seats.count() == 5)
    let group = store.collectionGroup("seats").order(by: "n", descending: true)
    let first = try await group.limit(3).get()
    #expect(first.map(\.id) == ["s9", "s8", "s7"])
    let last = try #require(first.last)
    #expect(try await group.start(afterDocument: last).limit(2).get().map(\.id) == ["s6", "s5"])
    #expect(try await group.start(at: 2).get().map(\.id) == ["s2", "s1", "s0"])
    let names = try await seats.query.select([]).limit(1).get()
    #expect(names[0].fields.isEmpty)
    // The documents in `rooms` were never written themselves.
    #expect(
      try await store.collection("rooms").listDocuments().references.map(\.id) == ["r0", "r1"]
    )
    #expect(try await store.listCollections().map(\.id) == ["rooms"])
    #expect(try await store.document("rooms/r0").listCollections().map(\.id) == ["seats"])
  }

  @Test("A query's snapshots show each commit at once and whole")
  func querySnapshots() async throws {
    let notes = store.collection("notes")
    try await notes.document("a").set(["stars": 3, "text": "\u{1F9E1} é"])
    var shown = notes.where("stars", .greaterThan, 2).order(by: "stars").snapshots()
      .makeAsyncIterator()
    let first = try #require(try await shown.next())
    #expect(first.documents.map(\.id) == ["a"])
    #expect(first.documents.first?["text"] == .string("\u{1F9E1} é"))

    var batch = store.batch()
    try batch.update(notes.document("a"), ["stars": 1])
    try batch.set(notes.document("b"), ["stars": 5])
    try batch.set(notes.document("c"), ["stars": 4])
    try await batch.commit()
    let second = try #require(try await shown.next())
    #expect(second.documents.map(\.id) == ["c", "b"])
    #expect(second.changes.map(\.kind) == [.removed, .added, .added])
  }

  @Test("Snapshots of more than one answer's length are whole")
  func largeSnapshots() async throws {
    let notes = store.collection("notes")
    let text = String(repeating: "ü\u{1F9E1}", count: 50_000)
    for number in 0..<12 { try await notes.document("\(number)").set(["text": text]) }
    var shown = notes.snapshots().makeAsyncIterator()
    #expect(try await shown.next()?.documents.count == 12)
    for number in 0..<12 {
      try await notes.document("\(number)").update(["text": "\(number) \(text)"])
      let snapshot = try #require(try await shown.next())
      #expect(snapshot.changes.map(\.document.id) == ["\(number)"])
    }
  }

  @Test("A document's snapshots show that it is missing, there, and gone")
  func documentSnapshots() async throws {
    let note = store.collection("notes").document("a")
    var shown = note.snapshots().makeAsyncIterator()
    #expect(try await shown.next()?.exists == false)
    try await note.set(["stars": 1])
    #expect(try await shown.next()?["stars"] == .integer(1))
    try await note.delete()
    #expect(try await shown.next()?.exists == false)
  }

  @Test("A query that is refused throws the server's status from its snapshots")
  func refusedSnapshots() async throws {
    let values = Array(0...30)
    var shown = store.collection("notes").where("a", .in, values).snapshots().makeAsyncIterator()
    let error = await #expect(throws: FirestoreError.self) { try await shown.next() }
    #expect(error?.code == .invalidArgument)
  }

  @Test("Listeners beyond those that connections suffice for are refused, not made to wait")
  func tooManySnapshots() async throws {
    let note = store.collection("notes").document("a")
    var loops: [DocumentSnapshots.AsyncIterator] = []
    for _ in 0..<64 {
      var shown = note.snapshots().makeAsyncIterator()
      #expect(try await shown.next()?.exists == false)
      loops.append(shown)
    }
    var further = note.snapshots().makeAsyncIterator()
    let error = await #expect(throws: FirestoreError.self) { try await further.next() }
    #expect(error?.code == .failedPrecondition)
    try await note.set(["stars": 1])
    for index in loops.indices {
      #expect(try await loops[index].next()?["stars"] == .integer(1))
    }
  }

  @Test("Transactions that collide all count")
  func transactions() async throws {
    let counter = store.document("counters/c")
    try await counter.set(["n": 0])
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          try await store.runTransaction(attemptsMax: 20) { transaction in
            let snapshot = try await transaction.get(counter)
            guard case .integer(let n) = snapshot["n"] else { return }
            try transaction.update(counter, ["n": n + 1])
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await counter.get()["n"] == .integer(4))
    let moment = try await store.runReadOnlyTransaction { try await $0.get(counter)["n"] }
    #expect(moment == .integer(4))
  }
}
