import StatusCodes
import DocumentModel
import Testing
import TestSupport

@testable import DocumentStore

/// Transaction commits that a client repeats because it did not receive the response.
@Suite("Repeated commits", .timeLimit(.minutes(5)))
struct RepeatedCommitTests {
  private let increment = set(
    "c/n",
    mask: [],
    transforms: [FieldTransform(path("n"), .increment(.integer(1)))]
  )

  @Test(
    "A commit that is sent again is applied once and has the same outcome",
    arguments: [false, true]
  )
  func again(optimistic: Bool) async throws {
    let fixture = StoreFixture()
    let id = try await fixture.begin(.readWrite(optimistic: optimistic))
    _ = try await fixture.get("c/n", at: .transaction(id))
    let first = try await fixture.commit(increment, in: id)
    try await fixture.commit(increment)

    let again = try await fixture.commit(increment, in: id)

    #expect(again == first)
    #expect(again.results[0].transformResults == [.integer(1)])
    #expect(try await fixture.get("c/n") == ["n": .integer(2)])
    #expect(fixture.store.locks.isEmpty)
  }

  @Test(
    "Writes that differ only in the spelling of a letter or in a value's type are others",
    arguments: [
      (set("c/caf\u{E9}"), set("c/cafe\u{301}")),
      (set("c/a", ["caf\u{E9}": .null]), set("c/a", ["cafe\u{301}": .null])),
      (set("c/a", ["f": .string("caf\u{E9}")]), set("c/a", ["f": .string("cafe\u{301}")])),
      (set("c/a", ["f": .integer(1)]), set("c/a", ["f": .double(.leastNonzeroMagnitude)])),
      (set("c/a", ["f": .array([])]), set("c/a", ["f": .vector([])])),
    ]
  )
  func nearlyTheSame(first: Write, second: Write) async throws {
    let fixture = StoreFixture()
    let id = try await fixture.begin()
    try await fixture.commit(first, in: id)

    await #expect(throws: TransactionTable.otherWrites) {
      try await fixture.commit(second, in: id)
    }
  }

  @Test("A commit that is sent again while it is under way waits and has its outcome")
  func meanwhile() async throws {
    let fixture = StoreFixture()
    let id = try await fixture.begin()
    let before = fixture.storage.commitsSubmitted
    fixture.storage.holdCommits()
    async let first = fixture.commit(increment, in: id)
    await fixture.storage.waitForCommits(before + 1)
    async let second = fixture.commit(increment, in: id)
    await #expect(throws: TransactionTable.otherWrites) {
      try await fixture.commit(set("c/other"), in: id)
    }
    fixture.storage.releaseCommits()

    #expect(try await first == second)
    #expect(try await fixture.get("c/n") == ["n": .integer(1)])
  }

  @Test("A commit whose client left while it waited can be sent again; it still holds what it read")
  func cancelled() async throws {
    //  transaction          reader        plain write
    //  read c/r
    //                       read c/n
    //  commit c/n waits
    //  cancelled
    //                                     c/r waits
    //                       ends
    //  commit c/n again
    let fixture = StoreFixture()
    let (id, reader) = (try await fixture.begin(), try await fixture.begin())
    _ = try await fixture.get("c/r", at: .transaction(id))
    _ = try await fixture.get("c/n", at: .transaction(reader))
    let first = Task { try await fixture.commit(increment, in: id) }
    await fixture.waitForLockWaiters(1)
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    async let write = fixture.commit(set("c/r"))
    await fixture.waitForLockWaiters(1)
    try await fixture.store.rollback(reader, database: database)

    let outcome = try await fixture.commit(increment, in: id)

    #expect(outcome.results[0].transformResults == [.integer(1)])
    #expect(try await write.commitTime > outcome.commitTime)
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("A repeated commit takes the place of the first when the first is given up")
  func replaced() async throws {
    let fixture = StoreFixture()
    let (id, reader) = (try await fixture.begin(), try await fixture.begin())
    _ = try await fixture.get("c/n", at: .transaction(reader))
    let first = Task { try await fixture.commit(increment, in: id) }
    await fixture.waitForLockWaiters(1)
    let second = Task { try await fixture.commit(increment, in: id) }
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    await fixture.waitForLockWaiters(1)
    try await fixture.store.rollback(reader, database: database)

    #expect(try await second.value.results[0].transformResults == [.integer(1)])
    #expect(try await fixture.get("c/n") == ["n": .integer(1)])
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("A failed commit is over: sent again it is refused, and not by ABORTED")
  func failed() async throws {
    let fixture = StoreFixture()
    let id = try await fixture.begin()
    let failing = set("c/none", if: .exists(true))
    #expect(await code { try await fixture.commit(failing, in: id) } == .notFound)

    await #expect(throws: TransactionTable.expired) { try await fixture.commit(failing, in: id) }
  }

  @Test("A token from before a restart is refused, in words by which no client runs it again")
  func restart() async throws {
    let first = StoreFixture()
    let id = try await first.begin()
    try await first.commit(increment, in: id)
    let second = StoreFixture(storage: first.storage)

    await #expect(throws: TransactionTable.unknown) { try await second.commit(increment, in: id) }
    #expect(try await second.get("c/n") == ["n": .integer(1)])
  }
}
