import DocumentModel
import EventLog
import Events
import Identity
import StatusCodes
import StorageEngine
import Testing
import TestSupport

@testable import DocumentStore

@Suite("Commits", .timeLimit(.minutes(5)))
struct CommitTests {
  @Test("A commit creates, updates and deletes at once, and leaves one event with all of it")
  func journey() async throws {
    let fixture = StoreFixture()
    let first = try await fixture.commit(
      set("c/a", ["v": .integer(1)]),
      set("c/b", ["v": .integer(1)])
    )
    let second = try await fixture.commit(
      set("c/a", ["v": .integer(2)], mask: ["v"]),
      delete("c/b"),
      set("c/c", ["v": .integer(3)])
    )

    #expect(try await fixture.ids(all("c")) == ["a", "c"])
    #expect(try await fixture.get("c/a") == ["v": .integer(2)])
    let events = try await fixture.events()
    #expect(events.map(\.commitTime) == [first.commitTime, second.commitTime])
    #expect(events.map(\.database) == [database, database])
    #expect(events[1].changes.map(\.kind) == [.updated, .deleted, .created])
    #expect(events[1].changes[0].before?.fields == ["v": .integer(1)])
    #expect(events[1].changes[0].after?.updateTime == second.commitTime)
    #expect(events[1].changes[0].after?.createTime == first.commitTime)
    #expect(second.results.map(\.updateTime) == [second.commitTime, nil, second.commitTime])
  }

  @Test("Commit times rise strictly in the order of sequences while the wall clock stands still")
  func commitTimes() async throws {
    let fixture = StoreFixture()
    fixture.stopWallClock(at: time(5_000_000))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<200 {
        group.addTask { try await fixture.commit(set("c/d\(index)")) }
      }
      try await group.waitForAll()
    }

    let events = try await fixture.events()

    #expect(events.count == 200)
    let times = events.map(\.commitTime.microseconds)
    #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("Commit times go on after a restart with the wall clock set back")
  func restart() async throws {
    let fixture = StoreFixture()
    let before = try await fixture.commit(set("c/d"))
    let later = StoreFixture(storage: fixture.storage)
    later.stopWallClock(at: time(1000))

    let after = try await later.commit(set("c/d", ["v": .null]))

    #expect(after.commitTime > before.commitTime)
  }

  @Test("A failing write leaves nothing: no document, no event, no lock")
  func atomicity() async throws {
    let fixture = StoreFixture()
    let failures: [(Write, StatusCode)] = [
      (set("c/x", if: .exists(true)), .notFound),
      (set("c/a", if: .exists(false)), .alreadyExists),
      (set("c/a", if: .updateTime(time(1))), .failedPrecondition),
      (set("c/__x__"), .invalidArgument),
      (verify("c/x", if: .exists(true)), .notFound),
    ]
    try await fixture.commit(set("c/a", ["v": .integer(1)]))
    for (write, expected) in failures {
      let outcome = await code { try await fixture.commit(set("c/new"), write) }
      #expect(outcome == expected)
    }

    #expect(try await fixture.ids(all("c")) == ["a"])
    #expect(try await fixture.events().count == 1)
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("A no-op keeps the version, leaves no event, and still takes a later commit time")
  func noOp() async throws {
    let fixture = StoreFixture()
    let first = try await fixture.commit(set("c/d", ["v": .integer(1)]))
    let second = try await fixture.commit(set("c/d", ["v": .integer(1)]))
    let empty = try await fixture.commit()

    #expect(second.results == [WriteOutcome(updateTime: first.commitTime)])
    #expect(second.commitTime > first.commitTime)
    #expect(empty.commitTime > second.commitTime)
    #expect(try await fixture.events().count == 1)
  }

  @Test("A server timestamp is in whole milliseconds and not after the commit")
  func serverTimestamp() async throws {
    let fixture = StoreFixture()
    let stamp = FieldTransform(path("t"), .requestTime)
    for _ in 0..<3 {
      let result = try await fixture.commit(set("c/d", mask: [], transforms: [stamp]))
      guard case .timestamp(let stamped) = result.results[0].transformResults[0] else {
        Issue.record("no timestamp")
        return
      }
      #expect(stamped.microseconds % 1000 == 0)
      #expect(stamped <= result.commitTime)
    }
  }

  @Test("The event contains the identity of the committer")
  func auth() async throws {
    let fixture = StoreFixture()
    let user = AuthContext.user(UserIdentity(uid: "u1", claimsJSON: "{}"))
    try await fixture.commit(set("c/a"))
    try await fixture.commit(set("c/b"), auth: user)

    #expect(try await fixture.events().map(\.auth) == [.admin, user])
  }

  @Test("While a cursor keeps the log too large, writes are refused by its name and reads go on")
  func exceededLog() async throws {
    let fixture = StoreFixture(exceededCursor: { "deliveries" })

    let error = try await #require(throws: StatusError.self) {
      try await fixture.commit(set("c/d"))
    }

    #expect(error.statusCode == .resourceExhausted)
    #expect(error.statusMessage.contains("\"deliveries\""))
    #expect(try await fixture.get("c/d") == nil)
    try await fixture.commit()
  }

  @Test("The refusal says why the log is full when somebody knows it")
  func exceededLogAdvice() async throws {
    let fixture = StoreFixture(
      exceededCursor: { "deliveries" },
      exceededAdvice: { "nothing was ever deployed" }
    )

    let error = try await #require(throws: StatusError.self) {
      try await fixture.commit(set("c/d"))
    }

    #expect(
      error.statusMessage
        == "The event log is full because nothing was ever deployed; writes are refused until it "
        + "catches up."
    )
  }

  @Test("A storage that refuses leaves nothing behind, and the next commit goes through")
  func storageFailure() async throws {
    let fixture = StoreFixture()
    fixture.storage.failCommits(with: StorageError(.full, "the disk is full"))

    #expect(await code { try await fixture.commit(set("c/d")) } == .resourceExhausted)
    #expect(fixture.store.locks.isEmpty)
    #expect(try await fixture.get("c/d") == nil)
    try await fixture.commit(set("c/d", ["v": .integer(1)]))
    #expect(try await fixture.get("c/d") == ["v": .integer(1)])
  }

  @Test("Commits of different documents are on their way together; of one, one after another")
  func groupCommit() async throws {
    let fixture = StoreFixture()
    fixture.storage.holdCommits()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<8 { group.addTask { try await fixture.commit(set("c/d\(index)")) } }
      // All eight commits reach the engine before any completes.
      await fixture.storage.waitForCommits(8)
      group.addTask { try await fixture.commit(set("c/d0", ["v": .integer(1)])) }
      await fixture.waitForLockWaiters(1)
      #expect(fixture.storage.commitsSubmitted == 8)
      fixture.storage.releaseCommits()
      try await group.waitForAll()
    }

    #expect(try await fixture.get("c/d0") == ["v": .integer(1)])
  }

  @Test("A batch's writes fail and succeed by themselves; a malformed request is refused whole")
  func batchWrite() async throws {
    let fixture = StoreFixture()
    let results = try await fixture.store.batchWrite(
      [
        set("c/a"), set("c/b", if: .exists(true)), set("c/c"), delete("c/nothing"),
      ],
      database: database,
      auth: .admin
    )

    #expect(
      results.map { result in
        switch result {
        case .success(let result): result.updateTime == nil ? "nothing" : "written"
        case .failure(let error): (error as? StatusError)?.statusCode.name ?? "?"
        }
      } == ["written", "NOT_FOUND", "written", "nothing"]
    )
    #expect(try await fixture.ids(all("c")) == ["a", "c"])
    #expect(try await fixture.events().count == 2)
    for malformed in [delete("c/e"), set("c/__x__"), set("c/f", ["": .null])] {
      let refusal = await code {
        try await fixture.store.batchWrite(
          [set("c/e"), malformed],
          database: database,
          auth: .admin
        )
      }
      #expect(refusal == .invalidArgument)
      #expect(try await fixture.get("c/e") == nil)
    }
  }

  @Test("A batch larger than what is in flight at a time is written in whole")
  func largeBatch() async throws {
    let fixture = StoreFixture()
    let writes = (0..<300).map { set("c/d\($0)") }

    let results = try await fixture.store.batchWrite(writes, database: database, auth: .admin)

    #expect(results.count == 300)
    #expect(try await fixture.events().count == 300)
  }

  @Test("A reset empties its database, notifies only listeners and ends its transactions")
  func reset() async throws {
    let fixture = StoreFixture()
    let other = DatabaseName(project: "p", database: "other")
    let elsewhere = DocumentName(database: other, path: ResourcePath(["c", "d"]))
    try await fixture.commit(set("c/a"), set("c/a/s/b"))
    _ = try await fixture.store.commit(
      [Write(.update(elsewhere, fields: [:], mask: nil, transforms: []))],
      database: other,
      transaction: nil,
      auth: .admin
    )
    let transaction = try await fixture.begin()
    _ = try await fixture.get("c/a", at: .transaction(transaction))
    let events = try await fixture.events().count

    try await fixture.store.reset(database)

    #expect(try await fixture.ids(all("c")) == [])
    let ids = try await fixture.store.listCollectionIDs(
      parent: ResourcePath(),
      database: database,
      pageSize: 0,
      pageToken: nil,
      at: .latest,
      auth: .admin
    )
    #expect(ids.collectionIDs == [])
    let sent = try await fixture.events().dropFirst(events)
    #expect(sent.map(\.purpose) == [.listenersOnly])
    #expect(sent.flatMap(\.changes).map(\.name.id) == ["a", "b"])
    #expect(sent.flatMap(\.changes).map(\.after) == [nil, nil])
    #expect(
      await code { try await fixture.get("c/a", at: .transaction(transaction)) }
        == .invalidArgument
    )
    let kept = try await fixture.store.lookUp([elsewhere], mask: nil, at: .latest, auth: .admin)
    #expect(kept.documents[0].document != nil)
    #expect(fixture.store.locks.isEmpty)
    try await fixture.commit(set("c/a", if: .exists(false)))
  }

  @Test("A reset waits for the commits under way")
  func resetWaits() async throws {
    let fixture = StoreFixture()
    fixture.storage.holdCommits()
    async let commit = fixture.commit(set("c/a"))
    await fixture.storage.waitForCommits(1)
    async let reset: Void = fixture.store.reset(database)
    await fixture.waitForLockWaiters(1)
    fixture.storage.releaseCommits()
    _ = try await commit
    try await reset

    #expect(try await fixture.get("c/a") == nil)
  }
}
