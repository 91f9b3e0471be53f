import DocumentModel
import Identity
import Synchronization
import Testing
import TestSupport

@testable import DocumentStore
@testable import EventLog

@Suite("What listeners are sent and what their clients know", .timeLimit(.minutes(5)))
struct ListenOrderTests {
  private let user = AuthContext.user(UserIdentity(uid: "u1", claimsJSON: "{}"))

  private func limited(_ collection: String = "c") -> ListenRequest {
    var query = all(collection)
    query.limit = 10
    return ListenRequest(.query(query))
  }

  // MARK: The first snapshot

  /// Runs a test with a hub that receives no commit until the test runs the tailer.
  private func withLaggingHub(
    _ fixture: StoreFixture,
    _ body: () async throws -> Void
  ) async throws {
    let telling = Task { try await fixture.store.hub.run(for: fixture.store) }
    await fixture.clock.waitForSleepers(1)
    try await body()
    telling.cancel()
    _ = await telling.result
  }

  /// Listens while the hub is behind and returns the events up to the first snapshot.
  ///
  /// The hub catches up once the listener waits for it or has its snapshot.
  private func answer(
    _ phone: Phone,
    _ request: ListenRequest,
    _ fixture: StoreFixture
  ) async throws -> [String] {
    await phone.session.add(request, id: 2)
    let isAnswered = Mutex(false)
    async let answer = {
      defer { isAnswered.withLock { $0 = true } }
      return try await phone.toSnapshot()
    }()
    await eventually("the listener waits or has its answer") {
      isAnswered.withLock(\.self) || fixture.store.hub.withTable { $0.isWaiting }
    }
    let tailing = Task { try await fixture.store.tailer.run() }
    defer { tailing.cancel() }
    return try await answer
  }

  @Test("The first answer of a shared window has every commit acknowledged before")
  func acknowledgedCommit() async throws {
    let fixture = StoreFixture()
    try await fixture.commit(set("c/a"))
    try await withLaggingHub(fixture) {
      let other = Phone(fixture)
      await other.session.add(limited(), id: 2)
      #expect(try await other.toSnapshot() == ["added 2", "c/a [2]", "current 2"])
      try await fixture.commit(set("c/b"))

      #expect(
        try await answer(Phone(fixture), limited(), fixture)
          == ["added 2", "c/a [2]", "c/b [2]", "current 2"]
      )
    }
  }

  @Test("A shared window never shows what was there before its listener had a right")
  func earlierSecret() async throws {
    let fixture = StoreFixture(access: MemberPolicy())
    try await fixture.commit(set("c/a"), set("c/secret"))
    try await withLaggingHub(fixture) {
      let other = Phone(fixture)
      await other.session.add(limited(), id: 2)
      #expect(try await other.toSnapshot().contains("c/secret [2]"))
      try await fixture.commit(delete("c/secret"))
      try await fixture.commit(set("members/u1"))

      #expect(
        try await answer(Phone(fixture, auth: user), limited(), fixture)
          == ["added 2", "c/a [2]", "current 2"]
      )
    }
  }

  @Test(
    "A target that is sent once, and one that resumes, are as recent",
    arguments: [true, false]
  )
  func onceAndResumed(isOnce: Bool) async throws {
    let fixture = StoreFixture()
    try await fixture.commit(set("c/a"))
    try await withLaggingHub(fixture) {
      let other = Phone(fixture)
      await other.session.add(limited(), id: 2)
      _ = try await other.toSnapshot()
      var request = limited()
      request.isOnce = isOnce
      if !isOnce {
        request.resumePoint = .readTime(try await fixture.store.readPosition().readTime)
        request.expectedCount = 1
      }
      try await fixture.commit(set("c/b"))

      #expect(
        try await answer(Phone(fixture), request, fixture)
          == ["added 2"] + (isOnce ? ["c/a [2]"] : []) + ["c/b [2]", "current 2"]
      )
    }
  }

  @Test("Under load, a client that writes and then listens to a shared window finds the write")
  func writesUnderLoad() async throws {
    try await withListeners { fixture in
      let other = Phone(fixture)
      var query = all("c")
      query.limit = 1000
      let request = ListenRequest(.query(query))
      await other.session.add(request, id: 2)
      _ = try await other.toSnapshot()
      let reading = Task { while await other.session.next() != nil {} }
      var missed = 0
      for round in 0..<50 {
        // The hub processes these commits one by one.
        try await withThrowingTaskGroup(of: Void.self) { group in
          for index in 0..<40 {
            group.addTask {
              try await fixture.commit(set("d/d\(index)", ["n": .integer(Int64(round))]))
            }
          }
          try await group.waitForAll()
        }
        try await fixture.commit(set("c/r\(round)"))
        let phone = Phone(fixture)
        await phone.session.add(request, id: 2)
        if try await !phone.toSnapshot().contains("c/r\(round) [2]") { missed += 1 }
      }
      other.session.close()
      await reading.value

      #expect(missed == 0)
    }
  }

  // MARK: Acknowledgements

  @Test("An idle client's listeners have each commit before its acknowledgement")
  func snapshotsComeFirst() async throws {
    try await withListeners { fixture in
      let client = ListenClient.page("p")
      let session = fixture.store.openListener(database: database, auth: .admin, client: client)
      defer { session.close() }
      let sent = Mutex<Set<String>>([])
      let sending = Task {
        while let events = await session.next() {
          for case .document(let document, _, _) in events {
            _ = sent.withLock { $0.insert(document.document.name.id) }
          }
        }
      }
      try await fixture.commit(set("c/first"))
      await session.add(ListenRequest(.query(all("c"))), id: 2)
      await session.add(limited(), id: 4)
      // A listener without its first snapshot holds up no acknowledgement.
      await eventually("the first snapshot is sent") { sent.withLock { $0.contains("first") } }
      var late = 0
      for index in 0..<200 {
        try await fixture.commit(set("c/d\(index)"))
        await fixture.store.waitForListeners(of: client)
        if sent.withLock({ !$0.contains("d\(index)") }) { late += 1 }
      }
      sending.cancel()

      #expect(late == 0)
    }
  }

  @Test(
    "An acknowledgement waits for a stuck listener once, for a bounded time, and never for others"
  )
  func stuckListener() async throws {
    try await withListeners { fixture in
      let client = ListenClient.page("stuck")
      let session = fixture.store.openListener(database: database, auth: .admin, client: client)
      defer { session.close() }
      await session.add(ListenRequest(.query(all("c"))), id: 2)
      try await fixture.commit(set("c/a"))
      await fixture.clock.waitForSleepers(1)

      await fixture.store.waitForListeners(of: nil)
      await fixture.store.waitForListeners(of: .page("other"))
      async let wait: Void = fixture.store.waitForListeners(of: client)
      await fixture.clock.waitForSleepers(2)
      fixture.clock.advance(by: DocumentDatabase.handoverTimeMax)
      await wait
      // The clock stands still: this call does not wait again for a listener that was late.
      await fixture.store.waitForListeners(of: client)

      // Once the client has caught up, commits wait for it again.
      let sending = Task { while await session.next() != nil {} }
      try await fixture.commit(set("c/b"))
      await fixture.store.waitForListeners(of: client)
      sending.cancel()
    }
  }

  @Test("A listener that goes away is waited for no longer")
  func closedListener() async throws {
    try await withListeners { fixture in
      let client = ListenClient.page("p")
      let session = fixture.store.openListener(database: database, auth: .admin, client: client)
      await session.add(ListenRequest(.query(all("c"))), id: 2)
      await fixture.clock.waitForSleepers(1)
      async let wait: Void = fixture.store.waitForListeners(of: client)
      await fixture.clock.waitForSleepers(2)
      session.close()
      await wait

      #expect(fixture.store.hub.sessions(of: client).isEmpty)
      #expect(fixture.store.hub.isEmpty)
    }
  }
}
