import DocumentModel
import Events
import TestSupport
import Testing

@testable import DocumentStore

/// Each interleaving is drawn as a table: time runs down, one column for each owner.
@Suite("Lock table")
struct LockTableTests {
  let one = LockOwner(age: 1, id: 1)
  let two = LockOwner(age: 2, id: 2)
  let three = LockOwner(age: 3, id: 3)

  func read(_ keys: String...) -> LockRequest {
    LockRequest(documents: Dictionary(uniqueKeysWithValues: keys.map { (Array($0.utf8), .shared) }))
  }

  func write(_ keys: String...) -> LockRequest {
    LockRequest(
      documents: Dictionary(uniqueKeysWithValues: keys.map { (Array($0.utf8), .exclusive) })
    )
  }

  func update(_ keys: String...) -> LockRequest {
    LockRequest(documents: Dictionary(uniqueKeysWithValues: keys.map { (Array($0.utf8), .update) }))
  }

  func query(
    _ collection: String,
    where matches: @escaping @Sendable (FirestoreDocument) -> Bool = { _ in true }
  )
    -> LockRequest
  {
    LockRequest(ranges: [
      QueryRange(
        database: database,
        parent: ResourcePath(),
        collectionID: collection,
        allDescendants: false,
        matches: matches
      )
    ])
  }

  func change(_ path: String, from before: Int64? = nil, to after: Int64? = nil) -> LockRequest {
    LockRequest(changes: [
      DocumentChange(
        name: name(path),
        before: before.map { document(path, ["n": .integer($0)]) },
        after: after.map { document(path, ["n": .integer($0)]) }
      )
    ])
  }

  func waits(_ outcome: (LockTable.Reception, [LockTable.Action])) throws -> LockTable.Ticket {
    guard case .waiting(let ticket) = outcome.0 else {
      throw Unexpected()
    }
    return ticket
  }

  struct Unexpected: Error {}

  @Test("Readers share a document and a writer has it alone")
  func sharedAndExclusive() throws {
    // one   two   three
    // r(a)
    //       r(a)
    //             w(a) waits
    // end         waits
    //       end   granted
    var table = LockTable()
    #expect(table.request(read("a"), by: one).reception == .granted)
    #expect(table.request(read("a"), by: two).reception == .granted)
    let ticket = try waits(table.request(write("a"), by: three))
    #expect(table.release(one) == [])
    #expect(table.release(two) == [.granted(ticket)])
    #expect(table.release(three) == [])
    #expect(table.isEmpty)
  }

  @Test("A reader behind several owners that intend to write is granted once the writer ends")
  func readerBehindUpdaters() throws {
    // one     two            three           four
    // w(a)
    //         u(a) waits
    //                        u(a) waits
    //                                        r(a), w(b) waits
    // end     granted                        granted
    //         w(b) waits                     (two would wait forever for four, which nothing wakes)
    let four = LockOwner(age: 4, id: 4)
    var table = LockTable()
    #expect(table.request(write("a"), by: one).reception == .granted)
    let first = try waits(table.request(update("a"), by: two))
    let second = try waits(table.request(update("a"), by: three))
    let request = LockRequest(documents: [Array("a".utf8): .shared, Array("b".utf8): .exclusive])
    let reader = try waits(table.request(request, by: four))
    #expect(table.release(one) == [.granted(first), .granted(reader)])
    let third = try waits(table.request(write("b"), by: two))
    #expect(table.release(four) == [.granted(third)])
    #expect(table.release(two) == [.granted(second)])
    #expect(table.release(three) == [])
    #expect(table.isEmpty)
  }

  @Test("A reader that comes after a waiting writer waits behind it")
  func fairness() throws {
    // one   two          three
    // r(a)
    //       w(a) waits
    //                    r(a) waits, though the lock is only shared
    // end   granted
    //       end          granted
    var table = LockTable()
    _ = table.request(read("a"), by: one)
    let writer = try waits(table.request(write("a"), by: two))
    let reader = try waits(table.request(read("a"), by: three))
    #expect(table.release(one) == [.granted(writer)])
    #expect(table.release(two) == [.granted(reader)])
  }

  @Test("Readers behind a writer are let in together")
  func readersTogether() throws {
    var table = LockTable()
    _ = table.request(write("a"), by: one)
    let first = try waits(table.request(read("a"), by: two))
    let second = try waits(table.request(read("a"), by: three))

    #expect(table.release(one) == [.granted(first), .granted(second)])
  }

  @Test("A request is granted whole or not at all")
  func allOrNothing() throws {
    // one   two             three
    // w(b)
    //       w(a, b) waits
    //                       w(c)
    //                       w(a) waits: two is ahead of it and requests a
    var table = LockTable()
    _ = table.request(write("b"), by: one)
    let both = try waits(table.request(write("a", "b"), by: two))
    #expect(table.request(write("c"), by: three).reception == .granted)
    let behind = try waits(table.request(write("a"), by: LockOwner(age: 4, id: 4)))
    #expect(table.release(one) == [.granted(both)])
    #expect(table.release(two) == [.granted(behind)])
  }

  @Test("A holder reads again what it has, though a writer waits for it")
  func rereading() throws {
    var table = LockTable()
    _ = table.request(read("a"), by: one)
    _ = try waits(table.request(write("a"), by: two))

    #expect(table.request(read("a"), by: one).reception == .granted)
  }

  @Test("A holder that upgrades passes the writer that waits for it")
  func upgradePasses() throws {
    // one    two
    // r(a)
    //        w(a) waits
    // w(a)   granted at once: waiting behind two would be waiting for itself
    // end    granted
    var table = LockTable()
    _ = table.request(read("a"), by: one)
    let ticket = try waits(table.request(write("a"), by: two))
    #expect(table.request(write("a"), by: one).reception == .granted)
    #expect(table.release(one) == [.granted(ticket)])
  }

  @Test("Of two readers that both want to write the later one is aborted")
  func upgradeDeadlock() throws {
    // one          two
    // r(a)
    //              r(a)
    // w(a) waits
    //              w(a): aborted
    // granted
    var table = LockTable()
    _ = table.request(read("a"), by: one)
    _ = table.request(read("a"), by: two)
    let first = try waits(table.request(write("a"), by: one))
    let outcome = table.request(write("a"), by: two)
    let second = try waits(outcome)
    #expect(outcome.actions == [.aborted(second), .granted(first)])
  }

  @Test("The older one wins even if it asks second")
  func olderWins() throws {
    var table = LockTable()
    _ = table.request(read("a"), by: one)
    _ = table.request(read("a"), by: two)
    let second = try waits(table.request(write("a"), by: two))
    let outcome = table.request(write("a"), by: one)
    #expect(outcome.reception == .granted)
    #expect(outcome.actions == [.aborted(second)])
  }

  @Test("A retried transaction wins by the age it took over")
  func retryPriority() throws {
    var table = LockTable()
    let retry = LockOwner(age: 1, id: 9)
    _ = table.request(read("a"), by: two)
    _ = table.request(read("a"), by: retry)
    let other = try waits(table.request(write("a"), by: two))
    let outcome = table.request(write("a"), by: retry)
    #expect(outcome.reception == .granted)
    #expect(outcome.actions == [.aborted(other)])
  }

  @Test("A circle of three loses its youngest and the others go on")
  func circleOfThree() throws {
    // one          two          three
    // w(a)         w(b)         w(c)
    // w(b) waits
    //              w(c) waits
    //                           w(a): aborted, two granted
    var table = LockTable()
    _ = table.request(write("a"), by: one)
    _ = table.request(write("b"), by: two)
    _ = table.request(write("c"), by: three)
    let first = try waits(table.request(write("b"), by: one))
    let second = try waits(table.request(write("c"), by: two))
    let outcome = table.request(write("a"), by: three)
    let third = try waits(outcome)
    #expect(outcome.actions == [.aborted(third), .granted(second)])
    #expect(table.release(two) == [.granted(first)])
  }

  @Test("Waiting behind a queued request closes no circle; the reader passes instead")
  func queueMakesNoDeadlock() throws {
    // one          two            three (plain writer, holds nothing)
    // r(a)         r(b)
    //                             w(a) waits for one
    //              r(a) waits behind three
    // w(b) waits for two, which now must not wait behind three: granted a
    var table = LockTable()
    _ = table.request(read("a"), by: one)
    _ = table.request(read("b"), by: two)
    let writer = try waits(table.request(write("a"), by: three))
    let reader = try waits(table.request(read("a"), by: two))
    let outcome = table.request(write("b"), by: one)
    let upgrade = try waits(outcome)
    #expect(outcome.actions == [.granted(reader)])
    #expect(table.release(two) == [.granted(upgrade)])
    #expect(table.release(one) == [.granted(writer)])
  }

  @Test("A cancelled request lets those behind it pass, and its owner keeps what it held")
  func cancellation() throws {
    var table = LockTable()
    _ = table.request(read("a"), by: one)
    let writer = try waits(table.request(write("a"), by: two))
    let reader = try waits(table.request(read("a"), by: three))
    #expect(table.cancel(writer) == [.granted(reader)])
    #expect(table.cancel(writer) == nil)
    #expect(table.cancel(reader) == nil)
    let again = try waits(table.request(write("a"), by: two))
    #expect(table.release(three) == [])
    #expect(table.release(one) == [.granted(again)])
  }

  @Test("Releasing an owner aborts the requests it has waiting")
  func releaseWhileWaiting() throws {
    var table = LockTable()
    _ = table.request(write("a"), by: one)
    _ = table.request(read("b"), by: two)
    let ticket = try waits(table.request(read("a"), by: two))

    #expect(table.release(two) == [.aborted(ticket)])
    #expect(table.release(one) == [])
    #expect(table.isEmpty)
  }

  @Test("Giving back a commit's locks leaves those of the reads")
  func releaseCommit() throws {
    var table = LockTable()
    _ = table.request(read("a"), by: one)
    _ = table.request(write("a", "b"), by: one)
    let reader = try waits(table.request(read("a"), by: two))
    let writer = try waits(table.request(write("b"), by: three))

    #expect(table.releaseCommit(one) == [.granted(reader), .granted(writer)])
    let late = try waits(table.request(write("a"), by: LockOwner(age: 4, id: 4)))
    #expect(table.release(two) == [])
    #expect(table.release(one) == [.granted(late)])
  }

  @Test("Documents read for writing stay locked when another commit releases its locks")
  func releaseCommitOfUpdate() throws {
    var table = LockTable()
    #expect(table.request(update("a"), by: one).reception == .granted)
    #expect(table.request(write("a", "b"), by: one).reception == .granted)
    let other = try waits(table.request(update("a"), by: two))
    // Read while the commit holds it: the lock for that read remains.
    #expect(table.request(read("b"), by: one).reception == .granted)
    let writer = try waits(table.request(write("b"), by: three))
    #expect(table.releaseCommit(one) == [])
    let isReadable = table.tryRequest(read("a"), by: LockOwner(age: 4, id: 4))
    #expect(isReadable)
    _ = table.release(LockOwner(age: 4, id: 4))
    #expect(
      Set(table.release(one).map(String.init(describing:))) == [
        String(describing: LockTable.Action.granted(other)),
        String(describing: LockTable.Action.granted(writer)),
      ]
    )
  }

  @Test("Readers pass the one that means to write, and a second one waits")
  func updates() throws {
    var table = LockTable()
    #expect(table.request(update("a"), by: one).reception == .granted)
    #expect(table.request(read("a"), by: two).reception == .granted)
    let second = try waits(table.request(update("a"), by: three))
    // The first owner waits only for the current reader, not for owners queued behind it.
    let upgrade = try waits(table.request(write("a"), by: one))
    #expect(table.release(two) == [.granted(upgrade)])
    #expect(table.release(one) == [.granted(second)])
  }

  @Test("Where readers aborted each other, the next ones come one by one until all are gone")
  func contended() throws {
    var table = LockTable()
    let key = Array("a".utf8)
    _ = table.request(read("a"), by: one)
    _ = table.request(read("a"), by: two)
    #expect(table.modeForReading(key, by: three) == .shared)
    _ = table.request(write("a"), by: two)
    _ = table.request(write("a"), by: one)
    #expect(table.modeForReading(key, by: three) == .update)
    let next = try waits(table.request(update("a"), by: three))
    #expect(table.release(one) == [.granted(next)])
    #expect(table.modeForReading(key, by: one) == .update)
    // An owner that holds a lock already reads with a shared lock, because others may wait for it.
    _ = table.request(read("b"), by: one)
    #expect(table.modeForReading(key, by: one) == .shared)
    _ = table.release(one)
    _ = table.release(three)
    #expect(table.modeForReading(key, by: one) == .shared)
    #expect(table.isEmpty)
  }

  @Test("Where readers of a range aborted each other, the next ones come one by one")
  func contendedRange() throws {
    var table = LockTable()
    var request = query("c")
    let line = request.ranges[0].queueKey
    request.documents[line] = .shared
    _ = table.request(request, by: one)
    _ = table.request(request, by: two)
    _ = table.request(change("c/a", to: 1), by: one)
    _ = table.request(change("c/b", to: 1), by: two)
    #expect(table.modeForReading(line, by: three) == .update)
    #expect(table.modeForReading(query("d").ranges[0].queueKey, by: three) == .shared)
    _ = table.release(one)
    #expect(table.isEmpty)
  }

  @Test(
    "A release looks at the next in line, and not at all who wait",
    arguments: [LockMode.update, .exclusive]
  )
  func longLine(mode: LockMode) throws {
    var table = LockTable()
    let owners = (1...UInt64(20_000)).map { LockOwner(age: $0, id: $0) }
    var request = mode == .update ? update("hot") : write("hot")
    request.documents[Array("database".utf8)] = .shared
    for owner in owners { _ = table.request(request, by: owner) }
    for (owner, ticket) in zip(owners, 2...20_001 as ClosedRange<LockTable.Ticket>) {
      let commits = table.tryRequest(write("hot"), by: owner)
      #expect(commits)
      #expect(table.release(owner) == (owner.id < 20_000 ? [.granted(ticket)] : []))
    }
    #expect(table.isEmpty)
  }

  @Test("A change that enters, leaves or stays in a query's results waits for the reader")
  func rangesBlockChanges() throws {
    let cases: [(Int64?, Int64?, Bool)] = [
      (nil, 5, true), (5, nil, true), (5, 6, true), (1, 5, true), (5, 1, true),
      (nil, 1, false), (1, nil, false), (1, 2, false),
    ]
    for (before, after, blocked) in cases {
      var table = LockTable()
      let isLarge: @Sendable (FirestoreDocument) -> Bool = { document in
        if case .integer(let n) = document.fields["n"] { n > 3 } else { false }
      }
      _ = table.request(query("c", where: isLarge), by: one)
      let granted = table.tryRequest(change("c/d", from: before, to: after), by: two)
      #expect(granted != blocked, "\(String(describing: before)) \(String(describing: after))")
    }
  }

  @Test("A query covers its collection, a group every collection of the name below its parent")
  func scopes() {
    let inRoot = QueryRange(
      database: database,
      parent: ResourcePath(),
      collectionID: "c",
      allDescendants: false
    )
    #expect(inRoot.contains(name("c/d")))
    #expect(!inRoot.contains(name("e/d")))
    #expect(!inRoot.contains(name("x/y/c/d")))
    var group = inRoot
    group.allDescendants = true
    #expect(group.contains(name("c/d")))
    #expect(group.contains(name("x/y/c/d")))
    #expect(!group.contains(name("c/d/e/f")))
    group.parent = ResourcePath(slashSeparated: "x/y")
    #expect(group.contains(name("x/y/c/d")))
    #expect(!group.contains(name("c/d")))
    group.collectionID = nil
    #expect(group.contains(name("x/y/z/d/e/f")))
    #expect(!group.contains(name("x/y")))
    let elsewhere = DocumentName(
      database: DatabaseName(project: "other"),
      path: ResourcePath(slashSeparated: "c/d")
    )
    #expect(!inRoot.contains(elsewhere))
  }

  @Test("A query waits for a change on its way and behind one that waits")
  func changesBlockRanges() throws {
    // one           two          three
    // q(c)
    //               change c/d waits
    //                            q(c) waits behind two
    // end           granted
    //               end          granted
    var table = LockTable()
    _ = table.request(query("c"), by: one)
    let changer = try waits(table.request(change("c/d", to: 1), by: two))
    let reader = try waits(table.request(query("c"), by: three))
    #expect(table.release(one) == [.granted(changer)])
    #expect(table.release(two) == [.granted(reader)])
    #expect(table.release(three) == [])
    #expect(table.isEmpty)
  }

  @Test("An owner's own query does not stand in the way of its change")
  func ownRange() {
    var table = LockTable()
    _ = table.request(query("c"), by: one)

    #expect(table.tryRequest(change("c/d", to: 1), by: one) == true)
  }

  @Test("An owner's second request is not held up by its first, which waits for something else")
  func twoRequestsOfOneOwner() throws {
    var table = LockTable()
    #expect(table.request(write("a"), by: one).reception == .granted)
    #expect(table.request(update("b"), by: two).reception == .granted)
    var both = update("b")
    both.documents.merge(write("a").documents) { $1 }
    _ = try waits(table.request(both, by: three))
    let second = try waits(table.request(update("b"), by: three))

    #expect(table.release(two) == [.granted(second)])
  }

  @Test("Two transactions that read the same range and both write into it lose the younger one")
  func phantomDeadlock() throws {
    var table = LockTable()
    _ = table.request(query("c"), by: one)
    _ = table.request(query("c"), by: two)
    let first = try waits(table.request(change("c/a", to: 1), by: one))
    let outcome = table.request(change("c/b", to: 1), by: two)
    let second = try waits(outcome)
    #expect(outcome.actions == [.aborted(second), .granted(first)])
  }

  @Test("In random sequences, locks never conflict, no waiter is stuck and all locks are released")
  func randomWalk() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<400 { try walk(&generator, seed) }
  }

  private func walk(_ generator: inout SeededGenerator, _ seed: UInt64) throws {
    var table = LockTable()
    var held: [LockOwner: [LockKey: LockMode]] = [:]
    /// The read lock that each owner held before its commit lock on the same key.
    var before: [LockOwner: [LockKey: LockMode?]] = [:]
    var waiting: [LockTable.Ticket: (LockOwner, LockRequest)] = [:]
    func grant(_ request: LockRequest, _ owner: LockOwner) {
      for (key, mode) in request.documents {
        let old = held[owner]?[key]
        if mode == .exclusive, old != .exclusive {
          before[owner, default: [:]][key] = .some(old)
        } else if mode != .exclusive, case .some(let read) = before[owner]?[key] {
          before[owner, default: [:]][key] = .some(max(read ?? mode, mode))
        }
        held[owner, default: [:]][key] = max(old ?? mode, mode)
      }
    }
    func lose(_ owner: LockOwner) {
      held[owner] = nil
      before[owner] = nil
    }
    func apply(_ actions: [LockTable.Action]) {
      for action in actions {
        switch action {
        case .granted(let ticket):
          guard let (owner, request) = waiting.removeValue(forKey: ticket) else { continue }
          grant(request, owner)
        case .aborted(let ticket):
          guard let (owner, _) = waiting.removeValue(forKey: ticket) else { continue }
          lose(owner)
        }
      }
    }
    for _ in 0..<60 {
      let id = UInt64.random(in: 1...5, using: &generator)
      let owner = LockOwner(age: id, id: id)
      if Int.random(in: 0..<12, using: &generator) == 0, let ticket = waiting.keys.min() {
        waiting[ticket] = nil
        apply(table.cancel(ticket) ?? [])
      } else if Int.random(in: 0..<4, using: &generator) == 0 {
        lose(owner)
        apply(table.release(owner))
        waiting = waiting.filter { $0.value.0 != owner }
      } else if Int.random(in: 0..<6, using: &generator) == 0 {
        for (key, mode) in before.removeValue(forKey: owner) ?? [:] { held[owner]?[key] = mode }
        apply(table.releaseCommit(owner))
      } else if Int.random(in: 0..<6, using: &generator) == 0
        || !waiting.values.contains(where: { $0.0 == owner })
      {
        var request = LockRequest()
        for _ in 0..<Int.random(in: 1...2, using: &generator) {
          let key = Array((["a", "b", "c"].randomElement(using: &generator) ?? "a").utf8)
          let modes: [LockMode] = [.shared, .update, .exclusive]
          request.documents[key] = modes.randomElement(using: &generator)
        }
        let outcome = table.request(request, by: owner)
        switch outcome.reception {
        case .granted:
          grant(request, owner)
        case .waiting(let ticket): waiting[ticket] = (owner, request)
        }
        apply(outcome.actions)
      }
      for (owner, locks) in held {
        for (key, mode) in locks {
          let isAgainst = held.contains {
            $0.key != owner && $0.value[key]?.conflicts(with: mode) ?? false
          }
          #expect(!isAgainst, "seed \(seed)")
        }
      }
    }
    // Owners that do not wait can finish. If that never frees the others, there was a deadlock.
    while let free = held.keys.first(where: { owner in
      !waiting.values.contains { $0.0 == owner }
    }) {
      held[free] = nil
      apply(table.release(free))
    }
    #expect(waiting.isEmpty, "seed \(seed)")
    #expect(table.isEmpty, "seed \(seed)")
  }
}
