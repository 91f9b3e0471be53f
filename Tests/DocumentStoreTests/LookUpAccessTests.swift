import DocumentModel
import EventLog
import Events
import Identity
import QueryEngine
import StatusCodes
import StorageEngine
import Synchronization
import Testing
import TestSupport

@testable import DocumentStore

/// Access to writes that depends on other documents, which change before the commit.
@Suite("Documents that decide on a commit", .timeLimit(.minutes(5)))
struct LookUpAccessTests {
  /// A policy that permits writes by a closure and counts its decisions.
  final class LookUpPolicy: AccessPolicy {
    typealias Rule = @Sendable (_ writes: [AccessWrite], _ view: AccessView) throws -> Bool

    private let rule: Rule
    private let didDecide: @Sendable () -> Void
    let decisions = Atomic<Int>(0)

    init(_ rule: @escaping Rule, didDecide: @escaping @Sendable () -> Void = {}) {
      self.rule = rule
      self.didDecide = didDecide
    }

    func isOpen(_ database: DatabaseName) -> Bool { false }

    func authorizeReads(
      _ documents: [(name: DocumentName, document: FirestoreDocument?)],
      auth: AuthContext,
      view: AccessView
    ) throws {}

    func authorizeQuery(_ query: Query, auth: AuthContext, view: AccessView) throws {}

    func authorize(_ request: AdministrativeRequest, in database: DatabaseName) throws {}

    func authorizeWrites(_ writes: [AccessWrite], auth: AuthContext, view: AccessView) throws {
      decisions.add(1, ordering: .relaxed)
      didDecide()
      guard try rule(writes, view) else { throw AccessTests.OwnerPolicy.denied }
    }
  }

  /// A store whose hook runs between the evaluation and the submission of a user's commit.
  struct Hooked {
    let storage = HookedStorage()
    let policy: LookUpPolicy
    let fixture: StoreFixture

    init(_ rule: @escaping LookUpPolicy.Rule) {
      policy = LookUpPolicy(rule) { [storage] in storage.arm() }
      fixture = StoreFixture(storage: FaultyStorage(storage), access: policy)
    }

    var decisions: Int { policy.decisions.load(ordering: .relaxed) }

    /// Runs `body` once, after the first evaluation.
    func once(_ body: @escaping @Sendable (StoreFixture) async throws -> Void) {
      let isDone = Mutex(false)
      storage.afterArmedReads { [fixture] in
        let wasDone = isDone.withLock { isDone in
          defer { isDone = true }
          return isDone
        }
        if !wasDone { try await body(fixture) }
      }
    }
  }

  static let user = AuthContext.user(UserIdentity(uid: "u", claimsJSON: "{}"))

  /// The ways to commit a single write.
  enum Way: CaseIterable {
    case plain, batch, pessimistic, optimistic

    func commit(_ write: Write, in fixture: StoreFixture) async throws {
      switch self {
      case .plain: try await fixture.commit(write, auth: LookUpAccessTests.user)
      case .batch:
        let results = try await fixture.store.batchWrite(
          [write],
          database: database,
          auth: LookUpAccessTests.user
        )
        _ = try results[0].get()
      case .pessimistic, .optimistic:
        let id = try await fixture.begin(.readWrite(optimistic: self == .optimistic))
        _ = try await fixture.get("other/read", at: .transaction(id))
        try await fixture.commit(write, in: id, auth: LookUpAccessTests.user)
      }
    }
  }

  static let gateIsOpen: LookUpPolicy.Rule = { writes, view in
    try view.document(name("gates/g"))?.fields["open"] == .boolean(true)
  }

  private static let closed: MapValue = ["open": .boolean(false)]
  private static let open: MapValue = ["open": .boolean(true)]

  @Test(
    "A gate that closes before the commit is handed over refuses it, whichever way it comes",
    arguments: Way.allCases,
    [set("gates/g", closed), delete("gates/g")]
  )
  func gateCloses(way: Way, closing: Write) async throws {
    let hooked = Hooked(Self.gateIsOpen)
    try await hooked.fixture.commit(set("gates/g", Self.open))
    hooked.once { try await $0.commit(closing) }

    let outcome = await code { try await way.commit(set("c/d"), in: hooked.fixture) }

    #expect(outcome == .permissionDenied)
    #expect(try await hooked.fixture.get("c/d") == nil)
    #expect(hooked.decisions == 2)
    #expect(hooked.fixture.store.locks.isEmpty)
  }

  @Test("A commit that is handed over but not yet visible counts as a change")
  func gateClosingInFlight() async throws {
    let policy = LookUpPolicy(Self.gateIsOpen)
    let fixture = StoreFixture(access: policy)
    try await fixture.commit(set("gates/g", Self.open))
    let before = fixture.storage.commitsSubmitted
    fixture.storage.holdCommits()
    async let closing = fixture.commit(set("gates/g", Self.closed))
    await fixture.storage.waitForCommits(before + 1)
    async let creation = code { try await fixture.commit(set("c/d"), auth: Self.user) }
    // It waits for the lock held by the commit that closes the gate.
    await fixture.waitForLockWaiters(1)
    #expect(policy.decisions.load(ordering: .relaxed) == 1)
    fixture.storage.releaseCommits()

    _ = try await closing
    #expect(await creation == .permissionDenied)
    #expect(try await fixture.get("c/d") == nil)
    #expect(fixture.store.locks.isEmpty)
  }

  @Test(
    "A document that was missing when it was looked at must still be missing",
    arguments: Way.allCases
  )
  func missing(way: Way) async throws {
    let hooked = Hooked { _, view in try view.document(name("blocked/u")) == nil }
    hooked.once { try await $0.commit(set("blocked/u")) }

    let outcome = await code { try await way.commit(set("c/d"), in: hooked.fixture) }

    #expect(outcome == .permissionDenied)
    #expect(try await hooked.fixture.get("c/d") == nil)
  }

  @Test(
    "Of two documents that each forbid the other, one comes to exist",
    arguments: [false, true]
  )
  func writeSkew(looksAfter: Bool) async throws {
    let hooked = Hooked { writes, view in
      let other = writes[0].write.name == name("c/a") ? name("c/b") : name("c/a")
      return try (looksAfter ? view.documentAfter(other) : view.document(other)) == nil
    }
    hooked.once { try await $0.commit(set("c/b"), auth: Self.user) }

    let outcome = await code { try await hooked.fixture.commit(set("c/a"), auth: Self.user) }

    #expect(outcome == .permissionDenied)
    #expect(try await hooked.fixture.get("c/a") == nil)
    #expect(try await hooked.fixture.get("c/b") != nil)
  }

  @Test("Documents that the same commit writes are looked at once, before and after it")
  func ownWrites() async throws {
    let hooked = Hooked { _, view in
      let counts = try (
        view.document(name("c/n"))?.fields["n"], view.documentAfter(name("c/n"))?.fields["n"]
      )
      return counts.0 == .integer(1) && counts.1 == .integer(2)
    }
    try await hooked.fixture.commit(set("c/n", ["n": .integer(1)]))
    hooked.once { try await $0.commit(set("c/unrelated")) }

    try await hooked.fixture.commit(set("c/n", ["n": .integer(2)]), set("c/d"), auth: Self.user)

    #expect(hooked.decisions == 1)
  }

  @Test("What changes but still allows the write lets it through, though it changes time and again")
  func hotGate() async throws {
    let hooked = Hooked(Self.gateIsOpen)
    let touches = Atomic<Int64>(0)
    let fixture = hooked.fixture
    let waiting = Mutex<[Task<Void, any Error>]>([])
    try await fixture.commit(set("gates/g", Self.open))
    hooked.storage.afterArmedReads {
      let isDone = Atomic(false)
      let number = touches.add(1, ordering: .relaxed).newValue
      let touch = Task {
        try await fixture.commit(
          set("gates/g", ["open": .boolean(true), "n": .integer(number)])
        )
        isDone.store(true, ordering: .relaxed)
      }
      waiting.withLock { $0.append(touch) }
      // No other commit changes the gate while this one, which reads the gate, holds its lock.
      await eventually("the change is made or waits for the lock") {
        isDone.load(ordering: .relaxed) || fixture.store.locks.waitingCount > 0
      }
    }

    try await fixture.commit(set("c/d"), auth: Self.user)

    #expect(hooked.decisions == 2)
    for touch in waiting.withLock({ $0 }) { try await touch.value }
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("A rule that looks at another document each time ends as contention, and leaves no locks")
  func endless() async throws {
    let current = Mutex(0)
    let hooked = Hooked { _, view in
      try view.document(name("c/x\(current.withLock { $0 })")) == nil
    }
    hooked.storage.afterArmedReads { [fixture = hooked.fixture] in
      let number = current.withLock { number in
        defer { number += 1 }
        return number
      }
      try await fixture.commit(set("c/x\(number)"))
    }

    let outcome = await code { try await hooked.fixture.commit(set("c/d"), auth: Self.user) }

    #expect(outcome == .aborted)
    #expect(hooked.decisions == 5)
    #expect(try await hooked.fixture.get("c/d") == nil)
    #expect(hooked.fixture.store.locks.isEmpty)
  }

  @Test("A change that storage did not take is none, also for those who decide after it")
  func failedChange() async throws {
    let hooked = Hooked(Self.gateIsOpen)
    let fixture = hooked.fixture
    try await fixture.commit(set("gates/g", Self.open))
    fixture.storage.failCommits(with: StorageError(.full, "the disk is full"))
    _ = await code { try await fixture.commit(set("gates/g", Self.closed)) }

    try await fixture.commit(set("c/d"), auth: Self.user)

    #expect(hooked.decisions == 1)
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("A reset in another database refuses nothing")
  func resetElsewhere() async throws {
    let hooked = Hooked(Self.gateIsOpen)
    try await hooked.fixture.commit(set("gates/g", Self.open))
    hooked.once { try await $0.store.reset(DatabaseName(project: "other")) }

    try await hooked.fixture.commit(set("c/d"), auth: Self.user)

    #expect(try await hooked.fixture.get("c/d") != nil)
  }

  @Test("A reset waits for a commit that was decided before it, and deletes what it wrote")
  func reset() async throws {
    let hooked = Hooked(Self.gateIsOpen)
    let fixture = hooked.fixture
    let resetting = Mutex<Task<Void, any Error>?>(nil)
    try await fixture.commit(set("gates/g", Self.open))
    hooked.once { fixture in
      let task = Task { try await fixture.store.reset(database) }
      resetting.withLock { $0 = task }
      await fixture.waitForLockWaiters(1)
    }

    try await fixture.commit(set("c/d"), auth: Self.user)
    try await resetting.withLock { $0 }?.value

    #expect(try await fixture.get("c/d") == nil)
    #expect(
      await code { try await fixture.commit(set("c/e"), auth: Self.user) } == .permissionDenied
    )
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("A transaction that has read the gate keeps it as it is, and commits at once")
  func lockedGate() async throws {
    let hooked = Hooked(Self.gateIsOpen)
    let fixture = hooked.fixture
    try await fixture.commit(set("gates/g", Self.open))
    let id = try await fixture.begin()
    _ = try await fixture.get("gates/g", at: .transaction(id))
    async let closing = fixture.commit(set("gates/g", Self.closed))
    await fixture.waitForLockWaiters(1)

    try await fixture.commit(set("c/d"), in: id, auth: Self.user)

    _ = try await closing
    #expect(hooked.decisions == 1)
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("Two transactions that write what the other's rule looks at do not wait for ever")
  func crossedTransactions() async throws {
    //  one                      two
    //  read c/a                 read c/b
    //  commit c/b, reads c/a
    //                           commit c/a, reads c/b
    let hooked = Hooked { writes, view in
      _ = try view.document(writes[0].write.name == name("c/a") ? name("c/b") : name("c/a"))
      return true
    }
    let fixture = hooked.fixture
    let (one, two) = (try await fixture.begin(), try await fixture.begin())
    _ = try await fixture.get("c/a", at: .transaction(one))
    _ = try await fixture.get("c/b", at: .transaction(two))
    async let first = code { try await fixture.commit(set("c/b"), in: one, auth: Self.user) }
    await fixture.waitForLockWaiters(1)
    let second = await code { try await fixture.commit(set("c/a"), in: two, auth: Self.user) }

    #expect(await first == .ok)
    #expect(second == .aborted)
    #expect(fixture.store.locks.isEmpty)
  }

  @Test(
    "No creation is committed after its gate was closed, whatever the interleaving",
    arguments: [false, true]
  )
  func gateRace(isSlow: Bool) async throws {
    var random = SeededGenerator.forTest()
    let policy = LookUpPolicy(Self.gateIsOpen)
    let fixture = Self.fixture(isSlow, policy, &random)
    for round in 0..<60 {
      try await fixture.commit(set("gates/g", Self.open))
      let ways = (0..<6).map { _ in Way.allCases.randomElement(using: &random) ?? .plain }
      let closingTurn = Int.random(in: 0..<6, using: &random)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (turn, way) in ways.enumerated() {
          group.addTask {
            let outcome = await code {
              try await way.commit(set("c/r\(round)t\(turn)"), in: fixture)
            }
            #expect([.ok, .permissionDenied, .aborted].contains(outcome))
          }
          if turn == closingTurn {
            group.addTask { try await fixture.commit(set("gates/g", Self.closed)) }
          }
        }
        try await group.waitForAll()
      }
    }

    try await expectNoCreationBehindTheGate(fixture, seed: random.seed)
    #expect(fixture.store.locks.isEmpty, "seed \(random.seed)")
  }

  private static func fixture(
    _ isSlow: Bool,
    _ policy: LookUpPolicy,
    _ random: inout SeededGenerator
  ) -> StoreFixture {
    let storage = isSlow ? FaultyStorage(SlowStorage(seed: random.next())) : FaultyStorage()
    return StoreFixture(storage: storage, access: policy)
  }

  private func expectNoCreationBehindTheGate(_ fixture: StoreFixture, seed: UInt64) async throws {
    var isOpen = false
    var created = 0
    for record in try await fixture.events() {
      for change in record.changes {
        if change.name == name("gates/g") {
          isOpen = change.after?.fields["open"] == .boolean(true)
        } else {
          created += 1
          #expect(isOpen, "\(change.name.path), seed \(seed)")
        }
      }
    }
    #expect(created > 0, "seed \(seed)")
  }

  @Test(
    "Two documents that forbid each other never both exist, whatever the interleaving",
    arguments: [false, true]
  )
  func exclusionRace(isSlow: Bool) async throws {
    var random = SeededGenerator.forTest()
    let policy = LookUpPolicy { writes, view in
      guard let path = writes.first?.write.name.path.description else { return false }
      let other = path.hasSuffix("a") ? path.dropLast() + "b" : path.dropLast() + "a"
      return try view.document(name(String(other))) == nil
    }
    let fixture = Self.fixture(isSlow, policy, &random)
    for round in 0..<100 {
      let ways = (0..<2).map { _ in Way.allCases.randomElement(using: &random) ?? .plain }
      await withTaskGroup(of: StatusCode.self) { group in
        for (way, id) in zip(ways, ["a", "b"]) {
          group.addTask {
            await code { try await way.commit(set("c/r\(round)\(id)"), in: fixture) }
          }
        }
        var outcomes: [StatusCode] = []
        for await outcome in group { outcomes.append(outcome) }
        #expect(
          outcomes.filter { $0 == .ok }.count == 1 || outcomes.contains(.aborted),
          "\(outcomes) by \(ways), seed \(random.seed)"
        )
      }
      let both = try await (fixture.get("c/r\(round)a"), fixture.get("c/r\(round)b"))
      #expect(both.0 == nil || both.1 == nil, "round \(round) by \(ways), seed \(random.seed)")
    }
    #expect(fixture.store.locks.isEmpty, "seed \(random.seed)")
  }
}
