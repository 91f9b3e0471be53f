import DocumentModel
import Identity
import StatusCodes
import Synchronization
import Testing
import TestSupport

@testable import DocumentStore
@testable import EventLog

@Suite("Listeners and access", .timeLimit(.minutes(5)))
struct ListenAccessTests {
  private let user = AuthContext.user(UserIdentity(uid: "u1", claimsJSON: "{}"))

  private func query(isLimited: Bool) -> ListenRequest {
    var query = all("c")
    if isLimited { query.limit = 10 }
    return ListenRequest(.query(query))
  }

  /// Returns once the hub has processed all commits.
  private func waitForHub(_ fixture: StoreFixture) async throws {
    let last = try await fixture.events().last?.sequence ?? 0
    await withCheckedContinuation { continuation in
      fixture.store.hub.withTable { table in
        table.after(last) { $0.afterwards { continuation.resume() } }
      }
    }
  }

  @Test(
    "A slow reader is never sent what was there while it had no right",
    arguments: [false, true]
  )
  func lostAndRegained(isLimited: Bool) async throws {
    let fixture = StoreFixture(access: MemberPolicy())
    try await withListeners(fixture) { fixture in
      try await fixture.commit(set("members/u1", [:]), set("c/a", [:]))
      let phone = Phone(fixture, auth: user)
      await phone.session.add(query(isLimited: isLimited), id: 2)
      #expect(try await phone.toSnapshot() == ["added 2", "c/a [2]", "current 2"])

      try await fixture.commit(delete("members/u1"))
      try await fixture.commit(set("c/secret", [:]))
      try await fixture.commit(delete("c/secret"))
      try await fixture.commit(set("members/u1", [:]), set("c/b", [:]))
      try await waitForHub(fixture)

      #expect(
        try await phone.toSnapshot() == ["reset 2", "c/a [2]", "c/b [2]", "current 2"]
      )
      try await fixture.commit(set("c/e", [:]))
      #expect(try await phone.toSnapshot() == ["c/e [2]"])
    }
  }

  @Test(
    "A permission that takes longer than the time between commits is decided all the same",
    arguments: [false, true]
  )
  func commitsWhileDeciding(isLimited: Bool) async throws {
    let policy = MemberPolicy()
    let storage = HookedStorage()
    let fixture = StoreFixture(storage: FaultyStorage(storage), access: policy)
    try await withListeners(fixture) { fixture in
      try await fixture.commit(set("members/u1", [:]), set("c/a", [:]))
      let decisions = Mutex(0)
      policy.willDecide.withLock {
        $0 = {
          decisions.withLock { $0 += 1 }
          storage.arm()
        }
      }
      storage.afterArmedReads { [self] in
        guard decisions.withLock({ $0 < 20 }) else { return }
        try await fixture.commit(set("other/x", [:]))
        try await waitForHub(fixture)
      }
      let phone = Phone(fixture, auth: user)

      await phone.session.add(query(isLimited: isLimited), id: 2)

      #expect(try await phone.toSnapshot() == ["added 2", "c/a [2]", "current 2"])
      // One decision before the results are read; a query without limit may need one more with
      // them.
      #expect(decisions.withLock(\.self) <= 2)
    }
  }

  @Test("A permission that is lost while it is decided is refused", arguments: [false, true])
  func lostWhileDeciding(isLimited: Bool) async throws {
    let policy = MemberPolicy()
    let storage = HookedStorage()
    let fixture = StoreFixture(storage: FaultyStorage(storage), access: policy)
    try await withListeners(fixture) { fixture in
      try await fixture.commit(set("members/u1", [:]), set("c/a", [:]))
      policy.willDecide.withLock { $0 = { storage.arm() } }
      let isLost = Mutex(false)
      storage.afterArmedReads { [self] in
        let wasLost = isLost.withLock { isLost in
          defer { isLost = true }
          return isLost
        }
        guard !wasLost else { return }
        try await fixture.commit(delete("members/u1"))
        try await waitForHub(fixture)
      }
      let phone = Phone(fixture, auth: user)

      await phone.session.add(query(isLimited: isLimited), id: 2)

      #expect(try await phone.refusal()?.statusCode == .permissionDenied)
    }
  }

  @Test("A slow reader whose right did not change is sent every change")
  func unrelatedCommits() async throws {
    let fixture = StoreFixture(access: MemberPolicy())
    try await withListeners(fixture) { fixture in
      try await fixture.commit(set("members/u1", [:]), set("c/a", [:]))
      let phone = Phone(fixture, auth: user)
      await phone.session.add(query(isLimited: false), id: 2)
      _ = try await phone.toSnapshot()

      try await fixture.commit(set("members/u1", ["since": .integer(1)]))
      try await fixture.commit(set("c/b", [:]))
      try await fixture.commit(delete("c/b"))
      try await waitForHub(fixture)

      #expect(try await phone.toSnapshot() == ["c/b [2]"])
      #expect(try await phone.toSnapshot() == ["deleted c/b -[2]"])
    }
  }

  @Test("A slow reader starts over when the policy was closed and opened again")
  func policyClosedAndOpened() async throws {
    let policy = MemberPolicy()
    let fixture = StoreFixture(access: policy)
    try await withListeners(fixture) { fixture in
      try await fixture.commit(set("members/u1", [:]), set("c/a", [:]))
      let phone = Phone(fixture, auth: user)
      await phone.session.add(query(isLimited: false), id: 2)
      _ = try await phone.toSnapshot()

      fixture.store.recheckListeners()
      try await fixture.commit(set("c/secret", [:]))
      try await fixture.commit(delete("c/secret"))
      fixture.store.recheckListeners()
      try await waitForHub(fixture)

      #expect(try await phone.toSnapshot() == ["reset 2", "c/a [2]", "current 2"])
    }
  }

  @Test(
    "A listener is refused when the policy changes while it is taken on",
    arguments: [false, true]
  )
  func policyChangesMeanwhile(isLimited: Bool) async throws {
    let policy = MemberPolicy()
    let fixture = StoreFixture(access: policy)
    try await withListeners(fixture) { fixture in
      try await fixture.commit(set("members/u1", [:]), set("c/a", [:]))
      let times = Mutex(0)
      policy.willDecide.withLock {
        $0 = {
          // The first decision still uses the old policy.
          guard
            times.withLock({
              $0 += 1; return $0 == 1
            })
          else { return }
          policy.isShut.withLock { $0 = true }
          fixture.store.recheckListeners()
        }
      }
      let phone = Phone(fixture, auth: user)
      var request = query(isLimited: isLimited)
      request.resumePoint = .readTime(try await fixture.store.readPosition().readTime)
      await phone.session.add(request, id: 2)

      #expect(try await phone.refusal()?.statusCode == .permissionDenied)
    }
  }
}
