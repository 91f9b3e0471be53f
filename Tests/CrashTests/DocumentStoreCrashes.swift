import DiskSimulation
import DocumentModel
import DocumentStore
import EventLog
import Events
import Identity
import QueryEngine
import SQLiteStorage
import StatusCodes
import StorageEngine
import Synchronization
import TestSupport

/// Committers of documents, over the document store.
///
/// Every commit creates a document of its own in the collection `marks`, so each event record
/// identifies the commit that made it.
final class DocumentStoreCrashes: CrashSubject {
  private static let database = DatabaseName(project: "p")
  private static let marks = "marks"
  private static let counters = "counters"
  private static let mark = "mark"

  /// The documents that a commit writes; nil for a deletion.
  private typealias Wanted = [DocumentName: MapValue?]

  private struct Promises {
    var lastNumber: Int64 = 0
    var commits: [Int64: Wanted] = [:]
    var acknowledged: [Int64: Timestamp] = [:]
    var refused: Set<Int64> = []
    var indexedQueries = 0
  }

  /// A store between two crashes, with its storage and its query engine.
  struct Life: Sendable {
    var storage: SQLiteStore
    var engine: QueryRunner
    var documents: DocumentDatabase
  }

  static let livesMax = 4
  static let tasks = 2...4

  private let wall = WallClock(step: .milliseconds(1))
  private let promises = Mutex(Promises())

  /// The number of compared queries that an index answered.
  var indexedQueries: Int { promises.withLock { $0.indexedQueries } }

  func open(_ storage: SQLiteStore) async throws -> Life {
    // Small limits, so that crashes occur while indexes are being built and removed.
    let engine = QueryRunner(
      configuration: .init(
        scanCandidatesMax: 0,
        indexCost: 0,
        indexesMax: 4,
        backfillDocumentsMax: 3,
        removalEntriesMax: 5
      ),
      logger: .silent
    )
    try await engine.load(from: storage)
    let documents = DocumentDatabase(
      storage: storage,
      queryRunner: engine,
      tailer: EventTailer(storage: storage, logger: .silent),
      now: wall.now,
      clock: ManualClock(),
      logger: .silent
    )
    return Life(storage: storage, engine: engine, documents: documents)
  }

  // MARK: Running until a crash

  /// Commits from several tasks, one of which also builds indexes.
  func work(_ life: Life, on site: CrashSite) async {
    await site.untilCrash { task, generator in
      if task == 0 { await Self.index(life, using: &generator) }
      if Int.random(in: 0..<4, using: &generator) == 0 {
        await self.count(in: life, using: &generator)
      } else {
        await self.commit(to: life, using: &generator)
      }
    }
  }

  /// Requests an index and runs some steps of its build.
  private static func index(_ life: Life, using generator: inout SeededGenerator) async {
    let query = queries[Int.random(in: 0..<queries.count, using: &generator)]
    let steps = Int.random(in: 0...6, using: &generator)
    do {
      let prepared = try life.engine.prepare(query)
      try await life.storage.read { snapshot in
        _ = try life.engine.run(prepared, on: snapshot) { _ in true }
      }
      try await life.documents.buildIndexes(commitsMax: steps)
    } catch {
      // The disk failed, or another writer was faster; unfinished builds continue later.
    }
  }

  private func commit(to life: Life, using generator: inout SeededGenerator) async {
    let number = takeNumber()
    var writes: [Write] = []
    var wanted: Wanted = [:]
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
      let name = Self.name(
        ["a", "b"][Int.random(in: 0...1, using: &generator)],
        "\(Int.random(in: 0..<12, using: &generator))"
      )
      guard wanted[name] == nil else { continue }
      let precondition: Precondition =
        switch Int.random(in: 0..<8, using: &generator) {
        case 0: .exists(true)
        case 1: .exists(false)
        default: .none
        }
      if Int.random(in: 0..<4, using: &generator) == 0 {
        wanted[name] = .some(nil)
        writes.append(Write(.delete(name), precondition: precondition))
      } else {
        let fields = Self.fields(of: number, using: &generator)
        wanted[name] = fields
        writes.append(Self.set(name, fields, if: precondition))
      }
    }
    await submit(writes, wanted, number, in: nil, to: life)
  }

  /// Increments a counter in a transaction.
  private func count(in life: Life, using generator: inout SeededGenerator) async {
    let name = Self.name(Self.counters, "\(Int.random(in: 0..<3, using: &generator))")
    let isOptimistic = Bool.random(using: &generator)
    do {
      let transaction = try await life.documents.begin(
        .readWrite(optimistic: isOptimistic),
        database: Self.database,
        auth: .admin
      )
      let before: FirestoreDocument?
      do {
        before = try await life.documents.lookUp(
          [name],
          mask: nil,
          at: .transaction(transaction),
          auth: .admin
        ).documents.first?.document
      } catch {
        try await life.documents.rollback(transaction, database: Self.database)
        return
      }
      let number = takeNumber()
      let fields: MapValue = [
        "count": .integer(Self.count(before) + 1), Self.mark: .integer(number),
      ]
      await submit([Self.set(name, fields)], [name: fields], number, in: transaction, to: life)
    } catch {
      // Nothing was submitted that would have to persist.
    }
  }

  private func takeNumber() -> Int64 {
    promises.withLock { promises in
      promises.lastNumber += 1
      return promises.lastNumber
    }
  }

  private func submit(
    _ writes: [Write],
    _ wanted: Wanted,
    _ number: Int64,
    in transaction: TransactionID?,
    to life: Life
  ) async {
    let mark = Self.name(Self.marks, "\(number)")
    let fields: MapValue = [Self.mark: .integer(number)]
    promises.withLock { $0.commits[number] = wanted.merging([mark: fields]) { $1 } }
    do {
      let result = try await life.documents.commit(
        writes + [Self.set(mark, fields)],
        database: Self.database,
        transaction: transaction,
        auth: .admin
      )
      promises.withLock { $0.acknowledged[number] = result.commitTime }
    } catch is StatusError {
      promises.withLock { _ = $0.refused.insert(number) }
    } catch {
      // Not acknowledged: it may exist after the crash or not, but never in part.
    }
  }

  private static func name(_ collection: String, _ id: String) -> DocumentName {
    DocumentName(database: database, path: ResourcePath(slashSeparated: "\(collection)/\(id)"))
  }

  private static func set(
    _ name: DocumentName,
    _ fields: MapValue,
    if precondition: Precondition = .none
  ) -> Write {
    Write(
      .update(name, fields: fields, mask: nil, transforms: []),
      precondition: precondition
    )
  }

  private static func fields(
    of number: Int64,
    using generator: inout SeededGenerator
  ) -> MapValue {
    let length = [0, 300, 5000].randomElement(using: &generator) ?? 0
    return [
      mark: .integer(number), "x": .integer(Int64.random(in: 0..<4, using: &generator)),
      "y": .integer(Int64.random(in: 0..<20, using: &generator)),
      "text": .string(String(repeating: "t", count: length)),
    ]
  }

  private static func count(_ document: FirestoreDocument?) -> Int64 {
    if case .integer(let count) = document?.fields["count"] { count } else { 0 }
  }

  /// More queries than indexes are allowed, so that some indexes are replaced.
  private static let queries: [Query] = ["a", "b"].flatMap { collection -> [Query] in
    let equal = Query.Filter.field(FieldPath(["x"]), .equal, .integer(2))
    let range = Query.Filter.field(FieldPath(["y"]), .greaterThan, .integer(7))
    let descending = Query.Order(FieldPath(["y"]), descending: true)
    return [
      Query(database: database, collectionID: collection, filter: equal),
      Query(database: database, collectionID: collection, filter: range, orders: [descending]),
      Query(database: database, collectionID: collection, filter: .and([equal, range])),
      Query(
        database: database,
        collectionID: collection,
        allDescendants: true,
        orders: [Query.Order(FieldPath(["x"]), descending: false)]
      ),
    ]
  }

  // MARK: Checks

  /// The data that remains after a crash.
  private struct Remains {
    var records: [CommitRecord]
    var documents: [DocumentName: FirestoreDocument]
  }

  func check(_ life: Life, after ending: Ending) async throws {
    try compare(try await Self.remains(life.storage))
    try await compareQueries(life)
    try await life.documents.buildIndexes()
    try await compareQueries(life)
    if ending == .stopped { try await checkEmptying(life) }
  }

  private static func remains(_ storage: SQLiteStore) async throws -> Remains {
    try await storage.read { snapshot in
      var documents: [DocumentName: FirestoreDocument] = [:]
      try snapshot.scan(DocumentKeys.keyspace, prefix: []) { _, value in
        let document = try DocumentKeys.decode(value.bytes)
        documents[document.name] = document
        return true
      }
      return Remains(
        records: try CommitLog.records(after: 0, limit: .max, in: snapshot),
        documents: documents
      )
    }
  }

  /// Replays the log, whose records must be complete commits and add up to the documents.
  private func compare(_ remains: Remains) throws {
    try promises.withLock { promises in
      var state: [DocumentName: FirestoreDocument] = [:]
      var found: [Int64: Timestamp] = [:]
      for record in remains.records {
        let number = try Self.number(of: record)
        guard found.updateValue(record.commitTime, forKey: number) == nil else {
          throw CrashTestError("commit \(number) is twice in the log")
        }
        guard let wanted = promises.commits[number], !promises.refused.contains(number) else {
          throw CrashTestError("commit \(number) is in the log, but was refused or never made")
        }
        try Self.compare(record, with: wanted, on: state)
        for change in record.changes { state[change.name] = change.after }
      }
      for (number, time) in promises.acknowledged where found[number] != time {
        throw CrashTestError("commit \(number) was acknowledged and is not in the log")
      }
      guard state == remains.documents else {
        throw CrashTestError("the documents are not those that the log makes")
      }
      // Everything that a store contains when it opens is safe.
      promises.acknowledged = found
    }
  }

  private static func number(of record: CommitRecord) throws -> Int64 {
    for change in record.changes where change.name.collection.description == marks {
      if case .integer(let number) = change.after?.fields[mark] { return number }
    }
    throw CrashTestError("the record \(record.sequence) lacks its mark")
  }

  private static func compare(
    _ record: CommitRecord,
    with wanted: Wanted,
    on state: [DocumentName: FirestoreDocument]
  ) throws {
    let expected = wanted.filter { $0.value != nil || state[$0.key] != nil }
    guard Set(record.changes.map(\.name)) == Set(expected.keys) else {
      throw CrashTestError("the record \(record.sequence) is a part of its commit")
    }
    for change in record.changes {
      guard change.before == state[change.name],
        change.after?.fields == expected[change.name] ?? nil
      else { throw CrashTestError("the record \(record.sequence) holds other images") }
      if change.name.collection.description == counters,
        count(change.after) != count(change.before) + 1
      {
        throw CrashTestError("the record \(record.sequence) miscounts")
      }
    }
  }

  /// Compares each query's result with that of an engine without indexes, which scans.
  private func compareQueries(_ life: Life) async throws {
    let scanning = QueryRunner(logger: .silent)
    for query in Self.queries {
      let prepared = try life.engine.prepare(query)
      let usesIndex = try await life.storage.read { snapshot -> Bool in
        var found: [FirestoreDocument] = []
        let statistics = try life.engine.run(prepared, on: snapshot) { document in
          found.append(document)
          return true
        }
        var expected: [FirestoreDocument] = []
        _ = try scanning.run(prepared, on: snapshot) { document in
          expected.append(document)
          return true
        }
        guard found == expected else {
          throw CrashTestError(
            "\(statistics.indexes) finds \(found.count) of \(expected.count) documents"
          )
        }
        return !statistics.indexes.isEmpty
      }
      if usesIndex { promises.withLock { $0.indexedQueries += 1 } }
    }
  }

  /// Deletes all documents, after which no index may have an entry.
  private func checkEmptying(_ life: Life) async throws {
    let names = try await Self.remains(life.storage).documents.keys
    guard !names.isEmpty else { return }
    _ = try await life.documents.commit(
      names.map { Write(.delete($0)) },
      database: Self.database,
      transaction: nil,
      auth: .admin
    )
    let entries = try await life.storage.read { snapshot in
      var count = 0
      try snapshot.scan(Keyspace("index_entries"), prefix: []) { _, _ in
        count += 1
        return true
      }
      return count
    }
    guard entries == 0 else { throw CrashTestError("\(entries) index entries have no document") }
  }
}
