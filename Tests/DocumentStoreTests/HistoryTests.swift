import DocumentModel
import Identity
import QueryEngine
import StatusCodes
import Synchronization
import Testing
import TestSupport

@testable import DocumentStore

/// Random transaction histories, checked for strict serializability.
///
/// Commit times define an order. If every transaction read exactly what the commits before it in
/// that order had written, the history is equivalent to a serial one.
@Suite("Histories")
struct HistoryTests {
  /// Unique numbers by document ID; each write of a history has its own number.
  private typealias State = [String: Int64]

  /// The reads and writes of a transaction, all as of `time`.
  private struct Step: Sendable {
    var time: Timestamp
    var isReadOnly = false
    var registers: [String: Int64?] = [:]
    /// For each key, the documents whose group number is at least that key.
    var ranges: [Int64: State] = [:]
    var writes: [String: Int64?] = [:]
  }

  private final class History: Sendable {
    let numbers = Atomic<Int64>(0)
    let steps = Mutex<[Step]>([])
  }

  private static let ids = ["a", "b", "c", "d", "e", "f"]
  private static let groups: Int64 = 4

  @Test(
    "Registers and ranges read as if transactions ran one by one",
    arguments: [1, 2, 3, 4, 5, 6]
  )
  func serialisable(round: Int) async throws {
    let seed = UInt64.random(in: 0 ... .max)
    let fixture = StoreFixture(
      storage: round.isMultiple(of: 2)
        ? FaultyStorage() : FaultyStorage(SlowStorage(seed: seed)),
      configuration: .init(queryPageDocumentsMax: 2, queryCandidatesMax: 2)
    )
    let history = History()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          var random = SeededGenerator(seed: seed &+ UInt64(task))
          for _ in 0..<40 {
            try await Self.attempt(fixture, &random, history)
          }
        }
      }
      try await group.waitForAll()
    }
    let done = history.steps.withLock { $0 }
    #expect(done.count > 100, "seed \(seed)")
    Self.check(done, seed)
    #expect(fixture.store.locks.isEmpty, "seed \(seed)")
  }

  private static func check(_ steps: [Step], _ seed: UInt64) {
    // A reader at the time of a commit sees that commit.
    let order = steps.sorted { ($0.time, $0.isReadOnly ? 1 : 0) < ($1.time, $1.isReadOnly ? 1 : 0) }
    var state = State()
    for step in order {
      for (id, seen) in step.registers {
        #expect(seen == state[id], "\(id) at \(step.time), seed \(seed)")
      }
      for (bound, seen) in step.ranges {
        let there = state.filter { $0.value % groups >= bound }
        #expect(seen == there, "from \(bound) at \(step.time), seed \(seed)")
      }
      for (id, number) in step.writes { state[id] = number }
    }
  }

  /// Runs one transaction of a random kind; an aborted one leaves nothing in the history.
  private static func attempt(
    _ fixture: StoreFixture,
    _ random: inout SeededGenerator,
    _ history: History
  ) async throws {
    let kind = Int.random(in: 0..<8, using: &random)
    var step = Step(time: Timestamp(microseconds: 0))
    do {
      var transaction: TransactionID?
      switch kind {
      case 0...2: transaction = try await fixture.begin(.readWrite())
      case 3...5: transaction = try await fixture.begin(.readWrite(optimistic: true))
      case 6: transaction = try await fixture.begin(.readOnly())
      default: break
      }
      if let transaction {
        for _ in 0..<Int.random(in: 1...3, using: &random) {
          try await read(fixture, transaction, &step, &random)
        }
      }
      if kind == 6, let transaction {
        step.isReadOnly = true
        try await fixture.commit(in: transaction)
        return history.steps.withLock { [step] in $0.append(step) }
      }
      var writes: [Write] = []
      for id in ids.shuffled(using: &random).prefix(Int.random(in: 1...2, using: &random)) {
        if Int.random(in: 0..<4, using: &random) == 0 {
          writes.append(delete("c/\(id)"))
          step.writes[id] = .some(nil)
        } else {
          let number = history.numbers.add(1, ordering: .relaxed).newValue
          writes.append(
            set("c/\(id)", ["n": .integer(number), "group": .integer(number % groups)])
          )
          step.writes[id] = number
        }
      }
      let outcome = try await fixture.store.commit(
        writes,
        database: database,
        transaction: transaction,
        auth: .admin
      )
      step.time = outcome.commitTime
      history.steps.withLock { [step] in $0.append(step) }
    } catch let error as StatusError where error.statusCode == .aborted {
      return
    }
  }

  private static func read(
    _ fixture: StoreFixture,
    _ transaction: TransactionID,
    _ step: inout Step,
    _ random: inout SeededGenerator
  ) async throws {
    func number(_ document: FirestoreDocument?) -> Int64? {
      if case .integer(let number)? = document?.fields["n"] { number } else { nil }
    }
    // Varies the order of the reads and commits.
    for _ in 0..<Int.random(in: 0..<3, using: &random) { await Task.yield() }
    if Bool.random(using: &random) {
      let id = ids.randomElement(using: &random) ?? "a"
      let result = try await fixture.store.lookUp(
        [name("c/\(id)")],
        mask: nil,
        at: .transaction(transaction),
        auth: .admin
      )
      step.registers[id] = number(result.documents[0].document)
      step.time = result.readTime
    } else {
      let bound = Int64.random(in: 0..<groups, using: &random)
      var query = all("c")
      query.filter = .field(path("group"), .greaterThanOrEqual, .integer(bound))
      let page = try await fixture.store.query(query, at: .transaction(transaction), auth: .admin)
      step.ranges[bound] = Dictionary(
        uniqueKeysWithValues: page.documents.compactMap { document in
          number(document).map { (document.name.id, $0) }
        }
      )
      step.time = page.readTime
    }
  }
}
