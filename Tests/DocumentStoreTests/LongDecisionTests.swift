import DocumentModel
import Foundation
import Identity
import StatusCodes
import Synchronization
import Testing
import TestSupport

@testable import DocumentStore

/// Access policies whose decisions take long.
@Suite("Decisions on access that take long", .timeLimit(.minutes(5)))
struct LongDecisionTests {
  /// A policy whose long decisions block their thread at a gate.
  ///
  /// By default, decisions on the collection `slow` take long.
  private final class SlowPolicy: AccessPolicy {
    private let gate = DispatchSemaphore(value: 0)
    /// Signals each decision that has reached the gate.
    let arrived = AsyncStream<Void>.makeStream()
    /// True if a decision takes long, by collection and by the decision's number, starting at 0.
    let takesLong: @Sendable (_ collection: String, _ decision: Int) -> Bool
    private let decisions = Atomic<Int>(0)
    /// Signals each brief decision that gave up.
    let givenUp = AsyncStream<Void>.makeStream()
    let isRefused: Bool

    init(
      isRefused: Bool = false,
      takesLong: @escaping @Sendable (String, Int) -> Bool = { collection, _ in
        collection == "slow"
      }
    ) {
      self.isRefused = isRefused
      self.takesLong = takesLong
    }

    func open(_ count: Int) {
      for _ in 0..<count { gate.signal() }
    }

    func isOpen(_ database: DatabaseName) -> Bool { false }

    private func decide(_ collection: String?, _ view: AccessView) throws {
      let number = decisions.add(1, ordering: .relaxed).oldValue
      guard takesLong(collection ?? "", number) else { return }
      guard !view.isBrief else {
        givenUp.continuation.yield()
        throw LongDecisionError()
      }
      arrived.continuation.yield()
      gate.wait()
      if isRefused { throw AccessTests.OwnerPolicy.denied }
    }

    func authorizeReads(
      _ documents: [(name: DocumentName, document: FirestoreDocument?)],
      auth: AuthContext,
      view: AccessView
    ) throws {
      try decide(documents.first?.name.path.segments.first, view)
    }

    func authorizeQuery(_ query: Query, auth: AuthContext, view: AccessView) throws {
      try decide(query.collectionID, view)
    }

    func authorize(_ request: AdministrativeRequest, in database: DatabaseName) throws {}

    func authorizeWrites(_ writes: [AccessWrite], auth: AuthContext, view: AccessView) throws {
      try decide(writes.first?.write.name.path.segments.first, view)
    }
  }

  private let user = AuthContext.user(UserIdentity(uid: "u", claimsJSON: "{}"))

  @Test("They hold up no other request, however many there are", arguments: [false, true])
  func others(isRefused: Bool) async throws {
    let policy = SlowPolicy(isRefused: isRefused)
    let fixture = StoreFixture(access: policy)
    let count = 12
    let outcomes = try await withThrowingTaskGroup(of: StatusCode.self) { group in
      for number in 0..<count / 3 {
        group.addTask { await code { try await fixture.commit(set("slow/\(number)"), auth: user) } }
        group.addTask {
          await code { try await fixture.store.query(all("slow"), at: .latest, auth: user) }
        }
        group.addTask {
          await code {
            try await fixture.store.lookUp([name("slow/x")], mask: nil, at: .latest, auth: user)
          }
        }
      }
      var arrivals = policy.arrived.stream.makeAsyncIterator()
      await arrivals.next()

      for number in 0..<20 {
        try await fixture.commit(set("quick/\(number)"), auth: user)
        let found = try await fixture.store.query(all("quick"), at: .latest, auth: user)
        #expect(found.documents.count == number + 1)
      }
      policy.open(count)
      return try await group.reduce(into: []) { $0.append($1) }
    }

    #expect(outcomes == Array(repeating: isRefused ? .permissionDenied : .ok, count: count))
    #expect(try await fixture.ids(all("slow")).count == (isRefused ? 0 : count / 3))
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("A request that is cancelled while it waits for them is not decided")
  func cancelled() async throws {
    let policy = SlowPolicy()
    let fixture = StoreFixture(access: policy)
    let first = Task { await code { try await fixture.commit(set("slow/1"), auth: user) } }
    var arrivals = policy.arrived.stream.makeAsyncIterator()
    await arrivals.next()
    let second = Task { try await fixture.commit(set("slow/2"), auth: user) }
    var givenUp = policy.givenUp.stream.makeAsyncIterator()
    await givenUp.next()
    await givenUp.next()

    second.cancel()
    policy.open(2)

    #expect(await first.value == .ok)
    await #expect(throws: CancellationError.self) { try await second.value }
    policy.arrived.continuation.finish()
    #expect(await arrivals.next() == nil)
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("A transaction's read that takes long only after its wait for locks goes on")
  func afterWait() async throws {
    // Decision 0 is made before the reader waits for locks, decision 1 afterwards.
    let fixture = StoreFixture(access: SlowPolicy { _, decision in decision == 1 })
    try await fixture.commit(set("c/d"))
    let (first, second) = (try await fixture.begin(), try await fixture.begin())
    _ = try await fixture.get("c/d", at: .transaction(first))
    async let write = fixture.commit(set("c/d", ["n": .integer(1)]))
    await fixture.waitForLockWaiters(1)
    async let read = fixture.store.lookUp(
      [name("c/d")],
      mask: nil,
      at: .transaction(second),
      auth: user
    )
    await fixture.waitForLockWaiters(2)

    try await fixture.store.rollback(first, database: database)

    _ = try await write
    #expect(try await read.documents[0].document?.fields == ["n": .integer(1)])
    try await fixture.commit(set("c/d", ["n": .integer(2)]), in: second)
    #expect(try await fixture.get("c/d") == ["n": .integer(2)])
    #expect(fixture.store.locks.isEmpty)
  }
}
