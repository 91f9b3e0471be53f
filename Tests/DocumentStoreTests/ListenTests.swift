import DocumentModel
import Identity
import QueryEngine
import StatusCodes
import Synchronization
import Testing
import TestSupport

@testable import DocumentStore
@testable import EventLog

@Suite("Listeners")
struct ListenTests {
  private func numbers(_ comparison: Query.FieldOperator, _ number: Int64) -> Query {
    var query = all("c")
    query.filter = .field(path("n"), comparison, .integer(number))
    return query
  }

  @Test("A commit's documents come in one snapshot, each once for all targets that it concerns")
  func commits() async throws {
    try await withListeners { fixture in
      try await fixture.commit(set("c/a", ["n": .integer(1)]), set("c/b", ["n": .integer(5)]))
      let phone = Phone(fixture)
      await phone.session.add(ListenRequest(.query(numbers(.lessThan, 3))), id: 2)
      #expect(try await phone.toSnapshot() == ["added 2", "c/a [2]", "current 2"])
      await phone.session.add(ListenRequest(.query(numbers(.greaterThan, 3))), id: 4)
      #expect(try await phone.toSnapshot() == ["added 4", "c/b [4]", "current 4"])
      await phone.session.add(ListenRequest(.documents([name("c/a")])), id: 6)
      #expect(try await phone.toSnapshot() == ["added 6", "c/a [6]", "current 6"])

      try await fixture.commit(
        set("c/a", ["n": .integer(7)]),
        delete("c/b"),
        set("c/d", ["n": .integer(2)])
      )

      #expect(
        Set(try await phone.toSnapshot()) == ["c/a [4, 6] -[2]", "deleted c/b -[4]", "c/d [2]"]
      )
    }
  }

  @Test("A window of a limit is filled again in the snapshot of the commit that took from it")
  func refill() async throws {
    try await withListeners { fixture in
      for index in 10..<60 { try await fixture.commit(set("c/d\(index)")) }
      let phone = Phone(fixture)
      var query = all("c")
      query.limit = 2
      await phone.session.add(ListenRequest(.query(query)), id: 2)
      #expect(try await phone.toSnapshot() == ["added 2", "c/d10 [2]", "c/d11 [2]", "current 2"])

      let deletions = (10..<40).map { delete("c/d\($0)") }
      _ = try await fixture.store.commit(
        deletions,
        database: database,
        transaction: nil,
        auth: .admin
      )

      #expect(
        try await phone.toSnapshot() == [
          "c/d40 [2]", "c/d41 [2]", "deleted c/d10 -[2]", "deleted c/d11 -[2]",
        ]
      )
      try await fixture.commit(set("c/d09"))
      #expect(try await phone.toSnapshot() == ["c/d09 [2]", "departed c/d41 -[2]"])
    }
  }

  @Test("A client that does not read is kept waiting in bounded memory and then starts over")
  func slowClient() async throws {
    try await withListeners { fixture in
      try await fixture.commit(set("c/a"))
      let phone = Phone(fixture, .init(waitingCommitsMax: 5))
      await phone.session.add(ListenRequest(.query(all("c"))), id: 2)
      #expect(try await phone.toSnapshot() == ["added 2", "c/a [2]", "current 2"])

      for index in 0..<20 { try await fixture.commit(set("c/b", ["n": .integer(Int64(index))])) }
      try await fixture.commit(delete("c/a"))
      let last = try await fixture.store.readPosition().sequence
      await eventually("the hub has all commits") {
        fixture.store.hub.withTable { $0.sequence } >= last
      }

      #expect(try await phone.toSnapshot() == ["reset 2", "c/b [2]", "current 2"])
    }
  }

  @Test("A quiet import and a reset are reported: by a new beginning, and as deletions")
  func discontinuity() async throws {
    try await withListeners { fixture in
      try await fixture.commit(set("c/a"))
      let phone = Phone(fixture)
      await phone.session.add(ListenRequest(.query(all("c"))), id: 2)
      _ = try await phone.toSnapshot()

      _ = try await fixture.store.load([document("c/b")], into: database, recordsEvents: false)
      #expect(try await phone.toSnapshot() == ["reset 2", "c/a [2]", "c/b [2]", "current 2"])
      try await fixture.store.reset(database)
      #expect(Set(try await phone.toSnapshot()) == ["deleted c/a -[2]", "deleted c/b -[2]"])
    }
  }

  @Test(
    "A target is replaced by one of its id, is gone once reported if asked, and may be named here"
  )
  func targets() async throws {
    try await withListeners { fixture in
      try await fixture.commit(set("c/a"), set("d/b"))
      let phone = Phone(fixture)
      await phone.session.add(ListenRequest(.query(all("c"))), id: 2)
      _ = try await phone.toSnapshot()
      await phone.session.add(ListenRequest(.query(all("d")), isOnce: true), id: 2)
      #expect(try await phone.toSnapshot() == ["added 2", "d/b [2]", "current 2"])
      await phone.session.add(ListenRequest(.documents([name("c/z")])), id: 0)
      #expect(
        try await phone.toSnapshot() == ["removed 2", "added 1", "deleted c/z -[1]", "current 1"]
      )
      await phone.session.remove(1)
      await phone.session.remove(77)
      await phone.session.add(ListenRequest(.query(all("d"))), id: 3)
      #expect(
        try await phone.toSnapshot() == [
          "removed 1", "removed 77", "added 3", "d/b [3]", "current 3",
        ]
      )
    }
  }

  @Test("What is wrong with one target ends that target, and the others go on")
  func refusals() async throws {
    try await withListeners { fixture in
      let phone = Phone(fixture, .init(targetsMax: 1))
      var invalid = numbers(.in, 1)
      await phone.session.add(ListenRequest(.query(invalid)), id: 2)
      #expect(try await phone.refusal()?.statusCode == .invalidArgument)
      invalid = all("c")
      invalid.database = DatabaseName(project: "other")
      await phone.session.add(ListenRequest(.query(invalid)), id: 2)
      #expect(try await phone.refusal()?.statusCode == .invalidArgument)
      let token = ResumePoint.token([1, 2, 3])
      await phone.session.add(ListenRequest(.query(all("c")), resumePoint: token), id: 2)
      #expect(try await phone.refusal() == ResumeToken.invalid)

      await phone.session.add(ListenRequest(.query(all("c"))), id: 4)
      #expect(try await phone.toSnapshot().last == "current 4")
      await phone.session.add(ListenRequest(.query(all("d"))), id: 6)
      #expect(try await phone.refusal()?.statusCode == .resourceExhausted)
      try await fixture.commit(set("c/a"))
      #expect(try await phone.toSnapshot() == ["c/a [4]"])
    }
  }

  @Test("Access is decided for each listener, also when others share its view")
  func access() async throws {
    try await withListeners(StoreFixture(access: AccessTests.OwnerPolicy())) { fixture in
      try await fixture.commit(set("c/a", ["owner": .string("u1")]))
      let admin = Phone(fixture)
      var window = all("c")
      window.limit = 3
      for query in [all("c"), window] {
        await admin.session.add(ListenRequest(.query(query)), id: 2)
        _ = try await admin.toSnapshot()
        let user = Phone(fixture, auth: AccessTests().user)
        await user.session.add(ListenRequest(.query(query)), id: 2)
        #expect(try await user.refusal()?.statusCode == .permissionDenied)
        await user.session.add(ListenRequest(.documents([name("c/a")])), id: 4)
        #expect(try await user.toSnapshot().contains("c/a [4]"))
        await user.session.add(ListenRequest(.documents([name("c/z")])), id: 6)
        #expect(try await user.refusal()?.statusCode == .permissionDenied)
      }
    }
  }

  @Test("Listeners to whom nothing happens are sent the read time, and the time never goes back")
  func idle() async throws {
    try await withListeners { fixture in
      let phone = Phone(fixture)
      await phone.session.add(ListenRequest(.query(all("c"))), id: 2)
      _ = try await phone.toSnapshot()
      await fixture.clock.waitForSleepers(1)
      fixture.clock.advance(by: .seconds(30))
      var times: [Timestamp] = []
      for number in 0..<3 {
        guard case .snapshot(let time, let token) = try await phone.next() else {
          continue
        }
        #expect(
          try fixture.store.hub.read(token: token, of: database) == .readTime(time)
        )
        times.append(time)
        if number < 2 {
          await fixture.clock.waitForSleepers(1)
          fixture.clock.advance(by: .seconds(30))
        }
      }
      #expect(times.count == 3)
      #expect(times == times.sorted())
    }
  }

  @Test("The hub ends although listeners wait for a commit that is never announced")
  func end() async throws {
    let fixture = StoreFixture()
    let telling = Task { try await fixture.store.hub.run(for: fixture.store) }
    await fixture.clock.waitForSleepers(1)
    // No task reads the log.
    try await fixture.commit(set("c/a"))
    let phone = Phone(fixture)
    await phone.session.add(ListenRequest(.query(all("c"))), id: 2)
    await eventually("the listener waits") { fixture.store.hub.withTable { $0.isWaiting } }
    telling.cancel()
    _ = await telling.result
    #expect(fixture.store.hub.withTable { !$0.isWaiting })
  }

  @Test("Nothing is left of a listener that is gone")
  func leftovers() async throws {
    try await withListeners { fixture in
      let phone = Phone(fixture)
      var window = all("c")
      window.limit = 1
      let targets: [ListenTarget] = [
        .query(all("c")), .query(window), .query(numbers(.equal, 1)), .documents([name("c/a")]),
      ]
      for (index, target) in targets.enumerated() {
        await phone.session.add(ListenRequest(target), id: Int32(index + 1))
        _ = try await phone.toSnapshot()
      }
      #expect(fixture.store.listenerCounts.views == 4)
      phone.session.close()

      #expect(fixture.store.hub.isEmpty)
    }
  }

  @Test("A token is refused when a bit of it is wrong, or another database's")
  func tokens() throws {
    let token = ResumeToken(store: 7, database: database, readTime: time(123_456))
    let bytes = token.bytes
    #expect(
      try ResumeToken.read(bytes, store: 7, database: database) == .readTime(time(123_456))
    )
    #expect(try ResumeToken.read(bytes, store: 8, database: database) == .ofAnotherStore)
    let other = DatabaseName(project: "p", database: "other")
    #expect(throws: ResumeToken.invalid) {
      try ResumeToken.read(bytes, store: 7, database: other)
    }
    for time in [Int64.min, -1, .max] {
      let forged = ResumeToken(
        store: 7,
        database: database,
        readTime: Timestamp(microseconds: time)
      )
      #expect(throws: ResumeToken.invalid) {
        try ResumeToken.read(forged.bytes, store: 7, database: database)
      }
    }
    for length in 0..<bytes.count {
      #expect(throws: ResumeToken.invalid) {
        try ResumeToken.read(Array(bytes.prefix(length)), store: 7, database: database)
      }
    }
    for bit in 0..<bytes.count * 8 {
      var damaged = bytes
      damaged[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(throws: ResumeToken.invalid) {
        try ResumeToken.read(damaged, store: 7, database: database)
      }
    }
  }

  @Test("A bloom filter finds all its names, and hardly any other", arguments: [1, 2, 37, 1000])
  func bloomFilter(count: Int) {
    var filter = BloomFilter(count: count)
    for index in 0..<count { filter.insert(name("c/d\(index)")) }

    #expect((0..<count).allSatisfy { mightContain(filter, name("c/d\($0)")) })
    #expect((0..<2000).count { mightContain(filter, name("c/e\($0)")) } < 3)
    #expect((0..<8).contains(filter.padding))
  }

  /// Tests the filter as a client does: every bit that a filter of only this name sets must be set.
  private func mightContain(_ filter: BloomFilter, _ name: DocumentName) -> Bool {
    var with = filter
    with.insert(name)
    return with == filter
  }
}
