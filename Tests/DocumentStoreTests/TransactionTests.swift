import DocumentModel
import EventLog
import Events
import Identity
import StatusCodes
import Synchronization
import Testing
import TestSupport

@testable import DocumentStore

/// Each interleaving is drawn as a table: time runs down, one column for each participant.
@Suite("Transactions", .timeLimit(.minutes(5)))
struct TransactionTests {
  static let expired = StatusError.invalidArgument(
    "The referenced transaction has expired or is no longer valid."
  )

  @Test("A transaction reads, writes and commits; its token is then invalid")
  func journey() async throws {
    let fixture = StoreFixture()
    try await fixture.commit(set("c/d", ["n": .integer(1)]))
    let read = try await fixture.store.lookUp(
      [name("c/d")],
      mask: nil,
      at: .newTransaction(.readWrite()),
      auth: .admin
    )
    let id = try #require(read.newTransaction)
    let outcome = try await fixture.commit(set("c/d", ["n": .integer(2)]), in: id)

    #expect(try await fixture.get("c/d") == ["n": .integer(2)])
    await #expect(throws: Self.expired) { try await fixture.get("c/d", at: .transaction(id)) }
    #expect(try await fixture.commit(set("c/d", ["n": .integer(2)]), in: id) == outcome)
    await #expect(throws: TransactionTable.otherWrites) { try await fixture.commit(in: id) }
    let late = await code { try await fixture.store.rollback(id, database: database) }
    #expect(late == .aborted)
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("A failed commit ends its transaction, and rolling back afterwards is fine, even twice")
  func failedCommit() async throws {
    let fixture = StoreFixture()
    let id = try await fixture.begin()
    _ = try await fixture.get("c/d", at: .transaction(id))
    let outcome = await code {
      try await fixture.commit(set("c/none", if: .exists(true)), in: id)
    }

    #expect(outcome == .notFound)
    await #expect(throws: Self.expired) { try await fixture.commit(in: id) }
    for _ in 0..<2 { try await fixture.store.rollback(id, database: database) }
    try await fixture.store.rollback(.make(), database: database)
    #expect(fixture.store.locks.isEmpty)
  }

  @Test(
    "A plain write waits for what a transaction has read, missing documents too",
    arguments: ["c/present", "c/missing"]
  )
  func plainWriteWaits(path: String) async throws {
    // transaction     plain
    // read d
    //                 set d waits
    // commit          granted
    let fixture = StoreFixture()
    try await fixture.commit(set("c/present"))
    let id = try await fixture.begin()
    _ = try await fixture.get(path, at: .transaction(id))
    async let plain = fixture.commit(set(path, ["by": .string("plain")]))
    await fixture.waitForLockWaiters(1)
    let committed = try await fixture.commit(set(path, ["by": .string("tx")]), in: id)

    #expect(try await plain.commitTime > committed.commitTime)
    #expect(try await fixture.get(path) == ["by": .string("plain")])
    #expect(try await fixture.events().suffix(2).map(\.changes.count) == [1, 1])
  }

  @Test("Reads outside of transactions and writes of other documents do not wait")
  func whatDoesNotWait() async throws {
    let fixture = StoreFixture()
    let id = try await fixture.begin()
    _ = try await fixture.get("c/d", at: .transaction(id))
    try await fixture.commit(set("c/other"))
    #expect(try await fixture.get("c/d") == nil)
    let second = try await fixture.begin()
    _ = try await fixture.get("c/d", at: .transaction(second))
  }

  @Test("Who waits for 15 seconds gets ABORTED; the holder goes on")
  func lockTimeout() async throws {
    let fixture = StoreFixture()
    let id = try await fixture.begin()
    _ = try await fixture.get("c/d", at: .transaction(id))
    async let plain = code { try await fixture.commit(set("c/d")) }
    await fixture.waitForLockWaiters(1)
    fixture.clock.advance(by: .seconds(15))

    #expect(await plain == .aborted)
    try await fixture.commit(set("c/d"), in: id)
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("Of two transactions that read and write one document, the later is ABORTED")
  func contention() async throws {
    // one             two
    // read d
    //                 read d
    // set d waits
    //                 set d: ABORTED
    // granted
    let fixture = StoreFixture()
    let one = try await fixture.begin()
    let two = try await fixture.begin()
    _ = try await fixture.get("c/d", at: .transaction(one))
    _ = try await fixture.get("c/d", at: .transaction(two))
    async let first = fixture.commit(set("c/d", ["by": .integer(1)]), in: one)
    await fixture.waitForLockWaiters(1)
    let second = await code { try await fixture.commit(set("c/d", ["by": .integer(2)]), in: two) }

    #expect(second == .aborted)
    _ = try await first
    #expect(try await fixture.get("c/d") == ["by": .integer(1)])
    await #expect(throws: Self.expired) { try await fixture.get("c/d", at: .transaction(two)) }
    try await fixture.store.rollback(two, database: database)
  }

  @Test("Where readers have aborted each other, the next ones wait for their turns")
  func retryInLine() async throws {
    // former, other    retry
    // read d
    // set d (other)
    // ABORTED (former)
    //                  read d waits
    // granted (other)  reads other's d
    //                  third: read d waits
    //                  set d
    //                  third reads retry's d
    let fixture = StoreFixture()
    let other = try await fixture.begin()
    let former = try await fixture.begin()
    _ = try await fixture.get("c/d", at: .transaction(other))
    _ = try await fixture.get("c/d", at: .transaction(former))
    fixture.storage.holdCommits()
    async let first = fixture.commit(set("c/d", ["n": .integer(1)]), in: other)
    await fixture.waitForLockWaiters(1)
    #expect(await code { try await fixture.commit(set("c/d"), in: former) } == .aborted)
    let retry = try await fixture.begin(.readWrite(retry: former))
    async let second = fixture.get("c/d", at: .transaction(retry))
    await fixture.waitForLockWaiters(1)
    fixture.storage.releaseCommits()
    #expect(try await second == ["n": .integer(1)])
    _ = try await first

    let third = try await fixture.begin()
    async let last = fixture.get("c/d", at: .transaction(third))
    await fixture.waitForLockWaiters(1)
    try await fixture.commit(set("c/d", ["n": .integer(2)]), in: retry)
    #expect(try await last == ["n": .integer(2)])
    try await fixture.commit(in: third)
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("Forty clients that add to one document four times each all succeed in five attempts")
  func hotDocument() async throws {
    let fixture = StoreFixture()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<40 {
        group.addTask {
          for _ in 0..<4 {
            var former: TransactionID?
            var attempts = 0
            while true {
              attempts += 1
              let id = try await fixture.begin(.readWrite(retry: former))
              let outcome = await code {
                let fields = try await fixture.get("c/hot", at: .transaction(id))
                let count = if case .integer(let n)? = fields?["n"] { n } else { Int64(0) }
                try await fixture.commit(set("c/hot", ["n": .integer(count + 1)]), in: id)
              }
              former = id
              if outcome == .ok { break }
              #expect(outcome == .aborted)
            }
            #expect(attempts <= 5)
          }
        }
      }
      try await group.waitForAll()
    }

    #expect(try await fixture.get("c/hot") == ["n": .integer(160)])
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("A transaction's query holds off what would enter, leave or change its results")
  func queryLocks() async throws {
    let fixture = StoreFixture()
    try await fixture.commit(set("c/in", ["n": .integer(5)]), set("c/out", ["n": .integer(1)]))
    var query = all("c")
    query.filter = .field(path("n"), .greaterThan, .integer(3))
    let blocked: [Write] = [
      set("c/new", ["n": .integer(9)]), delete("c/in"), set("c/out", ["n": .integer(4)]),
      set("c/in", ["n": .integer(0)]), set("c/in", ["n": .integer(6)]),
    ]
    for write in blocked {
      let id = try await fixture.begin()
      #expect(try await fixture.ids(query, at: .transaction(id)) == ["in"])
      async let plain = fixture.commit(write)
      await fixture.waitForLockWaiters(1)
      // Documents that the query does not cover are not locked.
      try await fixture.commit(
        set("c/small", ["n": .integer(0)]),
        delete("c/small"),
        set("e/x", ["n": .integer(9)])
      )
      #expect(try await fixture.ids(query, at: .transaction(id)) == ["in"])
      try await fixture.store.rollback(id, database: database)
      _ = try await plain
      try await fixture.commit(
        set("c/in", ["n": .integer(5)]),
        set("c/out", ["n": .integer(1)]),
        delete("c/new")
      )
    }
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("A write that waits for a query does not lock the document while it waits")
  func waitingHoldsNothing() async throws {
    // transaction          plain
    // query c
    //                      set c/d waits for the query
    // read c/d granted
    // set c/d granted
    // commit               granted
    let fixture = StoreFixture()
    try await fixture.commit(set("c/d", ["n": .integer(1)]))
    let id = try await fixture.begin()
    _ = try await fixture.ids(all("c"), at: .transaction(id))
    async let plain = fixture.commit(set("c/d", ["n": .integer(3)]))
    await fixture.waitForLockWaiters(1)
    #expect(try await fixture.get("c/d", at: .transaction(id)) == ["n": .integer(1)])
    try await fixture.commit(set("c/d", ["n": .integer(2)]), in: id)

    _ = try await plain
    #expect(try await fixture.get("c/d") == ["n": .integer(3)])
  }

  @Test("A read-only transaction sees one moment, takes no locks and may not write")
  func readOnly() async throws {
    let fixture = StoreFixture()
    try await fixture.commit(set("c/a", ["n": .integer(1)]), set("c/b", ["n": .integer(1)]))
    let id = try await fixture.begin(.readOnly())
    #expect(try await fixture.get("c/a", at: .transaction(id)) == ["n": .integer(1)])
    try await fixture.commit(set("c/b", ["n": .integer(2)]), delete("c/a"), set("c/c"))

    #expect(try await fixture.get("c/b", at: .transaction(id)) == ["n": .integer(1)])
    #expect(try await fixture.ids(all("c"), at: .transaction(id)) == ["a", "b"])
    try await fixture.commit(in: id)
    let writer = try await fixture.begin(.readOnly())
    await #expect(
      throws: StatusError.invalidArgument(
        "Cannot modify entities in a read-only transaction."
      )
    ) { try await fixture.commit(set("c/a"), in: writer) }
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("A read-only transaction of an earlier time reads as of then; a bad time begins none")
  func readOnlyAtATime() async throws {
    let fixture = StoreFixture()
    let then = try await fixture.commit(set("c/a", ["n": .integer(1)])).commitTime
    try await fixture.commit(set("c/a", ["n": .integer(2)]))
    let id = try await fixture.begin(.readOnly(readTime: then))
    #expect(try await fixture.get("c/a", at: .transaction(id)) == ["n": .integer(1)])

    let future = time(then.microseconds + 1_000_000_000)
    #expect(await code { try await fixture.begin(.readOnly(readTime: future)) } == .invalidArgument)
    #expect(
      await code { try await fixture.begin(.readOnly(readTime: time(0))) } == .failedPrecondition
    )
  }

  @Test("An optimistic transaction takes no locks and commits when nothing it read has changed")
  func optimisticSuccess() async throws {
    let fixture = StoreFixture()
    try await fixture.commit(set("c/d", ["n": .integer(1)]))
    let id = try await fixture.begin(.readWrite(optimistic: true))
    _ = try await fixture.get("c/d", at: .transaction(id))
    _ = try await fixture.ids(all("c"), at: .transaction(id))
    try await fixture.commit(set("e/x"), set("c/d", ["n": .integer(1)]))
    try await fixture.commit(set("c/d", ["n": .integer(2)]), in: id)

    #expect(try await fixture.get("c/d") == ["n": .integer(2)])
  }

  @Test("An optimistic transaction is ABORTED when a document it read has changed, or appeared")
  func optimisticConflict() async throws {
    for (write, expected) in [
      (set("c/present", ["n": .integer(2)]), StatusCode.aborted),
      (delete("c/present"), .aborted), (set("c/missing"), .aborted),
      (set("c/other"), .ok),
    ] {
      let fixture = StoreFixture()
      try await fixture.commit(set("c/present", ["n": .integer(1)]))
      let id = try await fixture.begin(.readWrite(optimistic: true))
      _ = try await fixture.get("c/present", at: .transaction(id))
      _ = try await fixture.get("c/missing", at: .transaction(id))
      try await fixture.commit(write)
      // Later reads still see the time of the first read.
      #expect(try await fixture.get("c/present", at: .transaction(id)) == ["n": .integer(1)])

      #expect(await code { try await fixture.commit(set("e/x"), in: id) } == expected)
      #expect(fixture.store.locks.isEmpty)
    }
  }

  @Test("An optimistic transaction is ABORTED by a phantom, but not by what its filter leaves out")
  func optimisticPhantom() async throws {
    for (write, expected) in [
      (set("c/new", ["n": .integer(9)]), StatusCode.aborted),
      (set("c/in", ["n": .integer(1)]), .aborted), (delete("c/in"), .aborted),
      (set("c/out", ["n": .integer(2)]), .ok), (set("e/new", ["n": .integer(9)]), .ok),
    ] {
      let fixture = StoreFixture()
      try await fixture.commit(set("c/in", ["n": .integer(5)]), set("c/out", ["n": .integer(1)]))
      var query = all("c")
      query.filter = .field(path("n"), .greaterThan, .integer(3))
      let id = try await fixture.begin(.readWrite(optimistic: true))
      #expect(try await fixture.ids(query, at: .transaction(id)) == ["in"])
      try await fixture.commit(write)

      #expect(await code { try await fixture.commit(set("e/x"), in: id) } == expected)
    }
  }

  @Test("An optimistic transaction waits for a phantom on its way, and is ABORTED by it")
  func optimisticPhantomOnItsWay() async throws {
    for query in [true, false] {
      let fixture = StoreFixture()
      try await fixture.commit(set("c/in"))
      let id = try await fixture.begin(.readWrite(optimistic: true))
      if query {
        #expect(try await fixture.ids(all("c"), at: .transaction(id)) == ["in"])
      } else {
        #expect(try await fixture.get("c/new", at: .transaction(id)) == nil)
      }
      let submitted = fixture.storage.commitsSubmitted
      fixture.storage.holdCommits()
      async let phantom = fixture.commit(set("c/new"))
      await fixture.storage.waitForCommits(submitted + 1)
      async let outcome = code { try await fixture.commit(set("e/x"), in: id) }
      await eventually("the transaction's commit waits for a lock or is submitted") {
        fixture.store.locks.waitingCount > 0 || fixture.storage.commitsSubmitted > submitted + 1
      }
      fixture.storage.releaseCommits()

      #expect(await outcome == .aborted)
      _ = try await phantom
    }
  }

  @Test("An optimistic transaction whose past is no longer kept is ABORTED, changed or not")
  func optimisticTrimmed() async throws {
    let fixture = StoreFixture()
    try await fixture.commit(set("c/d", ["n": .integer(1)]))
    let id = try await fixture.begin(.readWrite(optimistic: true))
    _ = try await fixture.get("c/d", at: .transaction(id))
    try await fixture.commit(set("c/d", ["n": .integer(100)]))
    try await fixture.trimEvents()

    let write = set("c/d", ["n": .integer(2)])
    #expect(await code { try await fixture.commit(write, in: id) } == .aborted)
    #expect(try await fixture.get("c/d") == ["n": .integer(100)])
  }

  @Test("A query that fails takes the transaction that it began along", arguments: [1, 100])
  func abandonedQuery(pageDocuments: Int) async throws {
    let fixture = StoreFixture(
      configuration: .init(
        queryPageDocumentsMax: pageDocuments,
        queryCandidatesMax: 2,
        queryResultBytesMax: 2000
      )
    )
    for index in 0..<4 {
      let text = FirestoreValue.string(String(repeating: "x", count: 900))
      try await fixture.commit(set("c/d\(index)", ["s": text]))
    }
    let query = all("c")
    let refused = await code {
      try await fixture.store.query(query, at: .newTransaction(.readWrite()), auth: .admin)
    }
    #expect(refused == .resourceExhausted)
    #expect(fixture.store.locks.isEmpty)

    // Cancelled before the first page and during it.
    let reading = Task { [query] in
      withUnsafeCurrentTask { $0?.cancel() }
      try await fixture.store.query(query, at: .newTransaction(.readWrite()), auth: .admin) { _ in }
    }
    await #expect(throws: CancellationError.self) { try await reading.value }
    #expect(fixture.store.locks.isEmpty)
    await #expect(throws: CancellationError.self) {
      try await fixture.store.query(query, at: .newTransaction(.readWrite()), auth: .admin) { _ in
        throw CancellationError()
      }
    }
    #expect(fixture.store.locks.isEmpty)
    #expect(fixture.store.transactions.withLock { $0.openCount } == 0)
  }

  @Test("An optimistic transaction that only read never conflicts")
  func optimisticReader() async throws {
    let fixture = StoreFixture()
    let id = try await fixture.begin(.readWrite(optimistic: true))
    _ = try await fixture.get("c/d", at: .transaction(id))
    try await fixture.commit(set("c/d"))
    try await fixture.commit(in: id)
  }

  @Test("An idle transaction loses its locks after 60 seconds, and those who wait are let in")
  func expiry() async throws {
    let fixture = StoreFixture(configuration: .init(lockWait: .seconds(300)))
    let id = try await fixture.begin()
    _ = try await fixture.get("c/d", at: .transaction(id))
    async let plain = fixture.commit(set("c/d"))
    await fixture.waitForLockWaiters(1)
    fixture.clock.advance(by: .seconds(59))
    fixture.store.expireTransactions()
    #expect(fixture.store.locks.waitingCount == 1)
    fixture.clock.advance(by: .seconds(1))
    fixture.store.expireTransactions()

    _ = try await plain
    await #expect(throws: Self.expired) { try await fixture.get("c/d", at: .transaction(id)) }
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("The running store expires transactions by itself")
  func sweeping() async throws {
    let fixture = StoreFixture(configuration: .init(lockWait: .seconds(300)))
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await fixture.store.run() }
      await fixture.clock.waitForSleepers(1)
      let id = try await fixture.begin()
      _ = try await fixture.get("c/d", at: .transaction(id))
      async let plain = fixture.commit(set("c/d"))
      await fixture.clock.waitForSleepers(2)
      fixture.clock.advance(by: .seconds(61))
      _ = try await plain
      group.cancelAll()
    }
  }

  @Test("A write that is cancelled while it waits gives up its place")
  func cancellation() async throws {
    let fixture = StoreFixture()
    let holder = try await fixture.begin()
    _ = try await fixture.get("c/d", at: .transaction(holder))
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        await #expect(throws: CancellationError.self) {
          try await fixture.commit(set("c/d"))
        }
      }
      await fixture.waitForLockWaiters(1)
      group.cancelAll()
    }

    #expect(fixture.store.locks.waitingCount == 0)
    try await fixture.commit(set("c/d"), in: holder)
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("A token is refused in another database")
  func foreignDatabase() async throws {
    let fixture = StoreFixture()
    let id = try await fixture.begin()
    let other = DatabaseName(project: "p", database: "other")

    let outcome = await code {
      try await fixture.store.commit([], database: other, transaction: id, auth: .admin)
    }

    #expect(outcome == .invalidArgument)
    try await fixture.commit(in: id)
  }

  @Test(
    "Money moved between accounts at random, by all kinds of transactions, neither appears nor vanishes"
  )
  func bank() async throws {
    let seed = UInt64.random(in: 0 ... .max)
    let fixture = StoreFixture()
    let accounts = (0..<6).map { "bank/a\($0)" }
    for account in accounts { try await fixture.commit(set(account, ["n": .integer(100)])) }
    try await withThrowingTaskGroup(of: Int.self) { group in
      for worker in 0..<8 {
        group.addTask {
          var generator = SeededGenerator(seed: seed &+ UInt64(worker))
          var moved = 0
          while moved < 25 {
            if try await Self.transfer(fixture, accounts, &generator) { moved += 1 }
          }
          return moved
        }
      }
      group.addTask {
        for _ in 0..<40 {
          let sum = try await Self.total(fixture, .newTransaction(.readOnly()))
          #expect(sum == 600, "seed \(seed)")
        }
        return 0
      }
      try await group.waitForAll()
    }

    #expect(try await Self.total(fixture, .latest) == 600, "seed \(seed)")
    #expect(fixture.store.locks.isEmpty, "seed \(seed)")
    // Every record preserves the total on its own, so no transfer was committed in part.
    for record in try await fixture.events().dropFirst(accounts.count) {
      let before = record.changes.reduce(0) { $0 + Self.number($1.before) }
      let after = record.changes.reduce(0) { $0 + Self.number($1.after) }
      #expect(before == after, "seed \(seed)")
    }
  }

  private static func number(_ document: FirestoreDocument?) -> Int64 {
    if case .integer(let n) = document?.fields["n"] { n } else { 0 }
  }

  private static func total(
    _ fixture: StoreFixture,
    _ consistency: ReadConsistency
  ) async throws -> Int64 {
    try await fixture.store.query(all("bank"), at: consistency, auth: .admin).documents
      .reduce(0) { $0 + number($1) }
  }

  /// Attempts a transfer in a pessimistic or an optimistic transaction; false if it was aborted.
  private static func transfer(
    _ fixture: StoreFixture,
    _ accounts: [String],
    _ generator: inout SeededGenerator
  ) async throws -> Bool {
    let pair = accounts.shuffled(using: &generator).prefix(2)
    let amount = Int64.random(in: 1...30, using: &generator)
    let optimistic = Bool.random(using: &generator)
    let byQuery = Int.random(in: 0..<4, using: &generator) == 0
    do {
      let id = try await fixture.begin(.readWrite(optimistic: optimistic))
      if byQuery { _ = try await total(fixture, .transaction(id)) }
      var balances: [Int64] = []
      for account in pair {
        let fields = try await fixture.get(account, at: .transaction(id)) ?? [:]
        if case .integer(let n) = fields["n"] { balances.append(n) }
      }
      let moved = min(amount, balances[0])
      try await fixture.commit(
        set(pair[0], ["n": .integer(balances[0] - moved)]),
        set(pair[1], ["n": .integer(balances[1] + moved)]),
        in: id
      )
      return true
    } catch let error as StatusError where error.statusCode == .aborted {
      return false
    }
  }
}
