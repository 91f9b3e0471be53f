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
    if isLimited { query.limit = 100 }
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
      // One decision before the results are read, and one as of the commits during it. A query
      // without limit may need one more with the results.
      #expect(decisions.withLock(\.self) <= 3)
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

  // hub     | members/u1 + c/0 | members/u1 + c/1 | …      | members/u1 + c/19 |
  // client  |                  |                  |        |                   | c/0 | c/1 | …
  // decides |                  |                  |        |                   | at the commit sent
  @Test(
    "A listener whose right depends on a document that changes all the time goes on",
    arguments: [false, true]
  )
  func hotDocument(isLimited: Bool) async throws {
    let policy = MemberPolicy()
    let fixture = StoreFixture(access: policy)
    try await withListeners(fixture) { fixture in
      try await fixture.commit(set("members/u1", [:]), set("c/a", [:]))
      let phone = Phone(fixture, auth: user)
      await phone.session.add(query(isLimited: isLimited), id: 2)
      _ = try await phone.toSnapshot()
      let commits: Range<Int64> = 0..<20

      for number in commits {
        try await fixture.commit(
          set("members/u1", ["seen": .integer(number)]),
          set("c/n\(number)", [:])
        )
      }
      try await waitForHub(fixture)

      for number in commits {
        #expect(try await phone.toSnapshot() == ["c/n\(number) [2]"])
      }
      // Once it is lost, nothing more is sent.
      try await fixture.commit(set("c/last", [:]))
      try await fixture.commit(delete("members/u1"))
      try await fixture.commit(set("c/secret", [:]))
      try await waitForHub(fixture)
      #expect(try await phone.toSnapshot() == ["c/last [2]"])
      guard case .removed(2, let cause) = try await phone.next() else {
        Issue.record("The target goes on")
        return
      }
      #expect(cause?.statusCode == .permissionDenied)
    }
  }

  @Test("A listener joins while the document that decides changes with every decision")
  func hotDocumentWhileJoining() async throws {
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
        let number = decisions.withLock { Int64($0) }
        guard number < 20 else { return }
        try await fixture.commit(set("members/u1", ["seen": .integer(number)]))
        try await waitForHub(fixture)
      }
      let phone = Phone(fixture, auth: user)
      var request = query(isLimited: false)
      request.resumePoint = .readTime(try await fixture.store.readPosition().readTime)

      await phone.session.add(request, id: 2)

      #expect(try await phone.toSnapshot() == ["added 2", "current 2"])
      policy.willDecide.withLock { $0 = nil }
      try await fixture.commit(set("c/b", [:]))
      #expect(try await phone.toSnapshot() == ["c/b [2]"])
    }
  }

  @Test("A slow reader is never sent what another document forbade on which its right came to rest")
  func rightRestsOnAnother() async throws {
    let fixture = StoreFixture(access: PassPolicy())
    try await withListeners(fixture) { fixture in
      try await fixture.commit(
        set("members/u1", ["pass": .string("p1")]),
        set("passes/p1", [:]),
        set("passes/p2", [:]),
        set("c/a", [:])
      )
      let phone = Phone(fixture, auth: user)
      await phone.session.add(query(isLimited: false), id: 2)
      _ = try await phone.toSnapshot()

      try await fixture.commit(set("members/u1", ["pass": .string("p2")]))
      try await fixture.commit(delete("passes/p2"))
      try await fixture.commit(set("c/secret", [:]))
      try await fixture.commit(delete("c/secret"))
      try await fixture.commit(set("passes/p2", [:]), set("c/b", [:]))
      try await waitForHub(fixture)

      #expect(
        try await phone.toSnapshot() == ["reset 2", "c/a [2]", "c/b [2]", "current 2"]
      )
    }
  }

  @Test("The rechecks of a client that takes nothing are few, however often its right is touched")
  func rechecksAreFew() async throws {
    let fixture = StoreFixture(access: MemberPolicy())
    try await withListeners(fixture) { fixture in
      try await fixture.commit(set("members/u1", [:]), set("c/a", [:]))
      let phone = Phone(fixture, auth: user, .init(waitingRechecksMax: 10))
      await phone.session.add(query(isLimited: false), id: 2)
      _ = try await phone.toSnapshot()

      let changes = (0..<20).map { set("members/u1", ["seen": .integer($0)]) }
      for change in changes { try await fixture.commit(change) }
      try await waitForHub(fixture)
      #expect(phone.session.state.withLock { $0.queue.recheckCount } == 1)
      for (number, change) in changes.enumerated() {
        try await fixture.commit(change, set("c/n\(number)", [:]))
      }
      try await waitForHub(fixture)

      #expect(phone.session.state.withLock { $0.queue.recheckCount } <= 10)
      #expect(try await phone.toSnapshot().first == "reset 2")
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

/// Allows users to read whose member document names a pass that exists.
private struct PassPolicy: AccessPolicy {
  func isOpen(_ database: DatabaseName) -> Bool { false }

  func authorizeReads(
    _ documents: [(name: DocumentName, document: FirestoreDocument?)],
    auth: AuthContext,
    view: AccessView
  ) throws {
    try require(auth, view)
  }

  func authorizeQuery(_ query: Query, auth: AuthContext, view: AccessView) throws {
    try require(auth, view)
  }

  private func require(_ auth: AuthContext, _ view: AccessView) throws {
    guard case .user(let user) = auth,
      case .string(let pass) = try view.document(name("members/\(user.uid)"))?.fields["pass"],
      try view.document(name("passes/\(pass)")) != nil
    else { throw AccessTests.OwnerPolicy.denied }
  }

  func authorize(_ request: AdministrativeRequest, in database: DatabaseName) throws {}

  func authorizeWrites(_ writes: [AccessWrite], auth: AuthContext, view: AccessView) throws {}
}
