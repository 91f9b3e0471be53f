import DocumentModel
import Identity
import StorageEngine
import Testing
import TestSupport

@testable import DocumentStore

/// A store that is reopened while the machine's clock is behind.
@Suite("Restarts with the clock behind", .timeLimit(.minutes(5)))
struct RestartTests {
  private static let day: Int64 = 86_400_000_000

  /// Reopens the store with a wall clock that is a day behind.
  private func restarted(_ fixture: StoreFixture) -> StoreFixture {
    let again = StoreFixture(storage: fixture.storage)
    again.passWallClock(-86_400)
    return again
  }

  @Test("Whatever comes first after a restart, its time is beyond every read time given out")
  func readTimes() async throws {
    let first = StoreFixture()
    try await first.commit(set("c/d"))
    first.passWallClock(86_400)
    let read = try await first.store.lookUp([name("c/d")], mask: nil, at: .latest, auth: .admin)
      .readTime

    let commit = try await restarted(first).commit(set("c/e")).commitTime
    let again = restarted(first)
    try await again.store.reset(DatabaseName(project: "other"))
    let later = try await again.store.lookUp([name("c/d")], mask: nil, at: .latest, auth: .admin)

    #expect(commit > read)
    #expect(later.readTime > commit)
  }

  @Test("A read at a given time, too, shows all commits of that time that there will ever be")
  func givenTime() async throws {
    let first = StoreFixture()
    try await first.commit(set("c/d", ["n": .integer(1)]))
    first.passWallClock(86_400)
    let now = first.store.now()
    #expect(try await first.get("c/d", at: .readTime(now)) == ["n": .integer(1)])

    let again = restarted(first)
    try await again.commit(set("c/d", ["n": .integer(2)]))

    #expect(try await again.get("c/d", at: .readTime(now)) == ["n": .integer(1)])
  }

  @Test("Times go on while the clock is behind: server timestamps differ, and commits rise")
  func timesGoOn() async throws {
    let first = StoreFixture()
    first.passWallClock(86_400)
    try await first.commit(set("c/d"))
    let again = restarted(first)
    var stamps: [FirestoreValue?] = []
    var times: [Timestamp] = []
    for _ in 0..<20 {
      again.passWallClock(1)
      let write = set("c/d", transforms: [FieldTransform(path("at"), .requestTime)])
      times.append(try await again.commit(write).commitTime)
      stamps.append(try await again.get("c/d")?["at"])
    }

    #expect(Set(stamps).count >= 18, "a lag of less than a second is none")
    #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
  }

  @Test("Reads cost no write but one in a while, and none right after commits")
  func cost() async throws {
    let fixture = StoreFixture()
    try await fixture.commit(set("c/d"))
    let before = fixture.storage.commitsSubmitted
    for _ in 0..<100 { _ = try await fixture.get("c/d") }
    #expect(fixture.storage.commitsSubmitted == before)

    fixture.passWallClock(3600)
    for _ in 0..<100 { _ = try await fixture.get("c/d") }
    #expect(fixture.storage.commitsSubmitted == before + 1)
  }

  @Test("A read goes on though storage takes no bound, and does not wait for a commit beside it")
  func failingStorage() async throws {
    let fixture = StoreFixture()
    try await fixture.commit(set("c/d"))
    fixture.passWallClock(10)
    fixture.storage.holdCommits()
    let before = fixture.storage.commitsSubmitted
    async let write = fixture.commit(set("c/e"))
    await fixture.storage.waitForCommits(before + 1)
    #expect(try await fixture.get("c/d") == [:])
    fixture.storage.releaseCommits()
    _ = try await write

    fixture.passWallClock(10)
    fixture.storage.refuseCommits(with: StorageError(.full, "the disk is full"))
    #expect(try await fixture.get("c/d") == [:])
    #expect(fixture.storage.commitsRefused == 1)
  }

  @Test("A listener that resumes after a restart is current again and misses no commit")
  func listener() async throws {
    let first = StoreFixture()
    var token: [UInt8] = []
    try await withListeners(first) { fixture in
      try await fixture.commit(set("c/a"))
      fixture.passWallClock(86_400)
      let phone = Phone(fixture)
      await phone.session.add(ListenRequest(.query(all("c"))), id: 1)
      #expect(try await phone.toSnapshot() == ["added 1", "c/a [1]", "current 1"])
      token = fixture.store.hub.token(try await fixture.store.readPosition().readTime, of: database)
    }
    let again = restarted(first)
    // No client listens at this time.
    try await again.commit(set("c/b"))

    try await withListeners(again) { fixture in
      let phone = Phone(fixture)
      await phone.session.add(ListenRequest(.query(all("c")), resumePoint: .token(token)), id: 1)
      #expect(try await phone.toSnapshot() == ["added 1", "c/b [1]", "current 1"])
      try await fixture.commit(set("c/c"))
      #expect(try await phone.toSnapshot() == ["c/c [1]"])
    }
  }

  @Test(
    "A token of this store from a time that it has lost resets its target, which is current again"
  )
  func futureToken() async throws {
    try await withListeners { fixture in
      try await fixture.commit(set("c/a"))
      let future = Timestamp(microseconds: fixture.store.now().microseconds + Self.day)
      let phone = Phone(fixture)
      await phone.session.add(ListenRequest(.query(all("c"))), id: 1)
      #expect(try await phone.toSnapshot() == ["added 1", "c/a [1]", "current 1"])
      // By now the store has the number that its tokens carry.
      let token = ResumePoint.token(fixture.store.hub.token(future, of: database))
      let again = Phone(fixture)
      await again.session.add(ListenRequest(.query(all("c")), resumePoint: token), id: 1)

      #expect(try await again.toSnapshot() == ["added 1", "reset 1", "c/a [1]", "current 1"])
      try await fixture.commit(set("c/b"))
      #expect(try await again.toSnapshot() == ["c/b [1]"])
    }
  }
}
