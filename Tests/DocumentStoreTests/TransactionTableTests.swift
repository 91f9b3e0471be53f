import DocumentModel
import StatusCodes
import Testing

@testable import DocumentStore

@Suite("Transaction table")
struct TransactionTableTests {
  let a = TransactionID.make()
  let b = TransactionID.make()

  @Test("A token is good until its transaction ends, and then is not, in production's words")
  func lifeCycle() throws {
    var table = TransactionTable()
    _ = try table.begin(a, .readWrite(), in: database, at: .zero)
    _ = try table.beginCall(a, in: database, at: .zero)
    table.endCall(a, at: .zero)
    _ = try table.startCommit(a, writes: 1, in: database, at: .zero)
    table.end(a, with: outcome(at: 5))

    let expired = StatusError.invalidArgument(
      "The referenced transaction has expired or is no longer valid."
    )
    #expect(throws: expired) { try table.beginCall(a, in: database, at: .zero) }
    #expect(throws: expired) { try table.beginCall(b, in: database, at: .zero) }
    #expect(throws: TransactionTable.unknown) {
      try table.startCommit(b, writes: 1, in: database, at: .zero)
    }

    _ = try table.begin(b, .readWrite(), in: database, at: .zero)
    _ = try table.rollBack(b, in: database)
    #expect(throws: expired) { try table.startCommit(b, writes: 1, in: database, at: .zero) }
  }

  private func outcome(at microseconds: Int64, results: Int = 0) -> CommitOutcome {
    CommitOutcome(
      results: Array(repeating: WriteOutcome(), count: results),
      commitTime: time(microseconds)
    )
  }

  private func committed(_ start: TransactionTable.CommitStart) -> CommitOutcome? {
    if case .committed(let outcome) = start { outcome } else { nil }
  }

  @Test("The same commit again has the same outcome; other writes and another database are refused")
  func repeatedCommit() throws {
    var table = TransactionTable()
    let other = DatabaseName(project: "p", database: "other")
    _ = try table.begin(a, .readWrite(), in: database, at: .zero)
    guard case .begun = try table.startCommit(a, writes: 1, in: database, at: .zero),
      case .underWay = try table.startCommit(a, writes: 1, in: database, at: .zero)
    else {
      Issue.record("The first request commits, and the second one waits for it.")
      return
    }
    #expect(throws: TransactionTable.otherWrites) {
      try table.startCommit(a, writes: 2, in: database, at: .zero)
    }
    table.end(a, with: outcome(at: 5))

    for second in [0, 1000] {
      let start = try table.startCommit(a, writes: 1, in: database, at: .seconds(second))
      #expect(committed(start) == outcome(at: 5))
    }
    #expect(throws: TransactionTable.otherWrites) {
      try table.startCommit(a, writes: 2, in: database, at: .zero)
    }
    #expect(throws: StatusError.self) {
      try table.startCommit(a, writes: 1, in: other, at: .zero)
    }
  }

  @Test("A commit that is given up can be made again, unless a reset has come in between")
  func reopened() throws {
    var table = TransactionTable()
    let owner = try table.begin(a, .readWrite(), in: database, at: .zero).owner
    _ = try table.startCommit(a, writes: 1, in: database, at: .zero)
    #expect(table.reopen(a, at: .seconds(9)) == nil)
    guard case .begun = try table.startCommit(a, writes: 2, in: database, at: .seconds(60)) else {
      Issue.record("The second request commits.")
      return
    }

    #expect(table.endAll(in: database).isEmpty)
    #expect(table.reopen(a, at: .seconds(61)) == owner)
    #expect(throws: TransactionTable.expired) {
      try table.startCommit(a, writes: 2, in: database, at: .seconds(61))
    }
  }

  @Test("Outcomes are remembered within a bound of memory; no commit is ABORTED after that")
  func outcomeBound() throws {
    var table = TransactionTable(limits: .init(outcomeBytesMax: 10_000))
    for (id, results) in [(a, 100), (b, 250)] {
      _ = try table.begin(id, .readWrite(), in: database, at: .zero)
      _ = try table.startCommit(id, writes: 1, in: database, at: .zero)
      table.end(id, with: outcome(at: 5, results: results))
    }

    #expect(throws: TransactionTable.outcomeForgotten) {
      try table.startCommit(a, writes: 1, in: database, at: .zero)
    }
    let start = try table.startCommit(b, writes: 1, in: database, at: .zero)
    #expect(committed(start) == outcome(at: 5, results: 250))
    let refusals = [
      TransactionTable.outcomeForgotten, TransactionTable.otherWrites, TransactionTable.unknown,
    ]
    for refusal in refusals {
      #expect(refusal.statusCode == .invalidArgument)
      // Clients rerun the transaction function when they see these words.
      #expect(!refusal.statusMessage.contains("transaction has expired"))
    }
  }

  @Test("What is forgotten with its token takes no memory for its outcome")
  func forgottenOutcomes() throws {
    var table = TransactionTable(limits: .init(endedMax: 4, outcomeBytesMax: 1000))
    for number in 0..<100 {
      let id = TransactionID.make()
      _ = try table.begin(id, .readWrite(), in: database, at: .zero)
      _ = try table.startCommit(id, writes: 1, in: database, at: .zero)
      table.end(id, with: outcome(at: Int64(number), results: 4))
      let start = try table.startCommit(id, writes: 1, in: database, at: .zero)
      #expect(committed(start) == outcome(at: Int64(number), results: 4))
    }
  }

  @Test(
    "What never was a token is distinguished from one that is no longer valid",
    arguments: [0, 3, 20]
  )
  func foreignForm(length: Int) {
    var table = TransactionTable()
    let foreign = TransactionID(bytes: Array(repeating: 0, count: length))
    let invalid = StatusError.invalidArgument("Invalid transaction.")
    #expect(throws: invalid) { try table.beginCall(foreign, in: database, at: .zero) }
    #expect(throws: invalid) { try table.startCommit(foreign, writes: 1, in: database, at: .zero) }
    #expect(throws: invalid) { try table.rollBack(foreign, in: database) }
  }

  @Test("Rolling back twice, or what is forgotten, is fine; after a commit it is ABORTED")
  func rollBack() throws {
    var table = TransactionTable()
    let owner = try table.begin(a, .readWrite(), in: database, at: .zero).owner
    #expect(try table.rollBack(a, in: database) == owner)
    #expect(try table.rollBack(a, in: database) == nil)
    #expect(try table.rollBack(.make(), in: database) == nil)

    _ = try table.begin(b, .readWrite(), in: database, at: .zero)
    _ = try table.startCommit(b, writes: 1, in: database, at: .zero)
    #expect(throws: StatusError.self) { try table.rollBack(b, in: database) }
    table.end(b, with: outcome(at: 5))
    let error = try #require(throws: StatusError.self) { try table.rollBack(b, in: database) }
    #expect(error.statusCode == .aborted)
  }

  @Test("After a failed commit a rollback is fine")
  func rollBackAfterFailure() throws {
    var table = TransactionTable()
    _ = try table.begin(a, .readWrite(), in: database, at: .zero)
    _ = try table.startCommit(a, writes: 1, in: database, at: .zero)
    table.end(a, .aborted)

    #expect(try table.rollBack(a, in: database) == nil)
  }

  @Test("A token is refused in another database")
  func foreignDatabase() throws {
    var table = TransactionTable()
    let other = DatabaseName(project: "p", database: "other")
    _ = try table.begin(a, .readWrite(), in: database, at: .zero)

    let error = try #require(throws: StatusError.self) {
      try table.beginCall(a, in: other, at: .zero)
    }
    #expect(error.statusCode == .invalidArgument)
    #expect(throws: StatusError.self) { try table.rollBack(a, in: other) }
    _ = try table.beginCall(a, in: database, at: .zero)
  }

  @Test("A transaction expires after 60 s without a request, but not during one")
  func idle() throws {
    var table = TransactionTable()
    _ = try table.begin(a, .readWrite(), in: database, at: .zero)
    _ = try table.beginCall(a, in: database, at: .seconds(59))
    #expect(table.expire(at: .seconds(200)).isEmpty)
    table.endCall(a, at: .seconds(200))
    #expect(table.expire(at: .seconds(259)).isEmpty)
    #expect(table.expire(at: .seconds(260)).count == 1)
    #expect(throws: TransactionTable.expired) {
      try table.beginCall(a, in: database, at: .seconds(260))
    }
  }

  @Test("A transaction expires after 270 s in any case, unless it is committing")
  func lifetime() throws {
    var table = TransactionTable()
    for id in [a, b] { _ = try table.begin(id, .readWrite(), in: database, at: .zero) }
    for second in stride(from: 50, to: 270, by: 50) {
      for id in [a, b] {
        _ = try table.beginCall(id, in: database, at: .seconds(second))
        table.endCall(id, at: .seconds(second))
      }
    }
    _ = try table.startCommit(b, writes: 1, in: database, at: .seconds(269))

    #expect(table.expire(at: .seconds(269)).isEmpty)
    #expect(table.expire(at: .seconds(270)).count == 1)
    #expect(table.isOpen(b))
    #expect(!table.isOpen(a))
  }

  @Test("Expiry counts even before it is swept")
  func expiryWithoutSweep() throws {
    var table = TransactionTable()
    _ = try table.begin(a, .readWrite(), in: database, at: .zero)

    #expect(throws: TransactionTable.expired) {
      try table.startCommit(a, writes: 1, in: database, at: .seconds(60))
    }
  }

  @Test("A retry takes the age of the former transaction, ended or not; any token is accepted")
  func retryAge() throws {
    var table = TransactionTable()
    let first = try table.begin(a, .readWrite(), in: database, at: .zero)
    let second = try table.begin(b, .readWrite(), in: database, at: .zero)
    table.end(a, .aborted)

    let retry = try table.begin(
      .make(),
      .readWrite(retry: a),
      in: database,
      at: .zero
    )
    let stranger = try table.begin(
      .make(),
      .readWrite(retry: TransactionID(bytes: [77])),
      in: database,
      at: .zero
    )

    #expect(first.owner < retry.owner)
    #expect(retry.owner < second.owner)
    #expect(second.owner < stranger.owner)
  }

  @Test("More open transactions than allowed are refused, and ended ones forgotten in time")
  func bounds() throws {
    var table = TransactionTable(limits: .init(openMax: 2, endedMax: 4))
    for id in [a, b] { _ = try table.begin(id, .readWrite(), in: database, at: .zero) }
    let error = try #require(throws: StatusError.self) {
      try table.begin(.make(), .readWrite(), in: database, at: .zero)
    }
    #expect(error.statusCode == .resourceExhausted)

    table.end(a, .committed)
    for _ in 0..<10 {
      let id = TransactionID.make()
      _ = try table.begin(id, .readWrite(), in: database, at: .zero)
      table.end(id, .aborted)
    }
    #expect(try table.rollBack(a, in: database) == nil)
  }

  @Test("The first read decides a transaction's time")
  func pinning() throws {
    var table = TransactionTable()
    _ = try table.begin(a, .readOnly(), in: database, at: .zero)

    #expect(table.pin(a, to: time(5)) == time(5))
    #expect(table.pin(a, to: time(6)) == time(5))
  }

  @Test("A reset ends the transactions of its database alone")
  func endAll() throws {
    var table = TransactionTable()
    let other = DatabaseName(project: "p", database: "other")
    _ = try table.begin(a, .readWrite(), in: database, at: .zero)
    _ = try table.begin(b, .readWrite(), in: other, at: .zero)

    #expect(table.endAll(in: database).count == 1)
    #expect(!table.isOpen(a))
    #expect(table.isOpen(b))
  }
}
