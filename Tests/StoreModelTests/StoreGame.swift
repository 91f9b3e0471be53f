import DocumentModel
import EventLog
import Identity
import Logging
import QueryEngine
import QueryModel
import StatusCodes
import StorageEngine
import Synchronization
import Testing
import TestSupport

@testable import DocumentStore
@testable import EventLog
@testable import FirestoreEmulator

/// A store and its model, to which the same random operations are applied.
struct StoreGame {
  /// The expected contents of the store.
  typealias Model = [DocumentName: FirestoreDocument]

  private static let database = RandomQueries.database
  /// The maximum number of past times that queries may use.
  private static let momentsMax = 40

  private var random: RandomQueries
  private let seed: UInt64
  private let wall = WallClock(step: .milliseconds(1))
  private var storage: any OrderedStorage
  private var runner: QueryRunner
  private var store: DocumentDatabase
  /// The task that notifies the listeners.
  private var telling: Task<Void, any Error>
  private var clients: [ListeningClient] = []
  /// The expected contents by the time of the commit that created them.
  private var history = StoreHistory()
  private var model: Model = [:]
  private var moments: [(time: Timestamp, model: Model)] = []
  private(set) var hasFailed = false

  init(seed: UInt64, storage: any OrderedStorage) async throws {
    random = RandomQueries(seed: seed)
    self.seed = seed
    self.storage = storage
    (runner, store, telling) = try await Self.open(storage, wall)
  }

  /// Continues after `stop` with a store opened from scratch, as in a new process.
  mutating func restart(over storage: any OrderedStorage) async throws {
    self.storage = storage
    (runner, store, telling) = try await Self.open(storage, wall)
    for client in clients { await client.resume(on: store) }
  }

  /// Stops the background tasks; clients keep their caches.
  func stop() async {
    for client in clients { await client.disconnect() }
    telling.cancel()
    _ = await telling.result
  }

  private static func open(
    _ storage: any OrderedStorage,
    _ wall: WallClock
  ) async throws -> (QueryRunner, DocumentDatabase, Task<Void, any Error>) {
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let runner = QueryRunner(
      configuration: .init(
        scanCandidatesMax: 10,
        indexCost: 0,
        joinEntriesMin: 1,
        indexesMax: 12,
        backfillDocumentsMax: 7,
        removalEntriesMax: 9,
        wastedCandidatesMax: 100,
        idleWritesMax: 200
      ),
      logger: logger
    )
    try await runner.load(from: storage)
    let tailer = EventTailer(storage: storage, ringCapacity: 8, logger: logger)
    let store = DocumentDatabase(
      storage: storage,
      queryRunner: runner,
      tailer: tailer,
      now: wall.now,
      clock: ManualClock(),
      configuration: .init(queryPageDocumentsMax: 5, queryCandidatesMax: 9),
      logger: logger
    )
    let telling = Task {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await tailer.run() }
        group.addTask { try await store.hub.run(for: store) }
        try await group.waitForAll()
      }
    }
    return (runner, store, telling)
  }

  /// Performs a random operation.
  mutating func play() async throws {
    switch random.count(0...99) {
    case 0..<40: try await commit()
    case 40..<48: try await query()
    case 48..<50: try await findNearest()
    case 50..<64: await listen()
    case 64: try await checkListeners()
    case 65..<75: try await aggregate()
    case 75..<82: try await transact()
    case 82..<90: try await lookUp()
    case 90..<96: try await store.buildIndexes(commitsMax: random.count(1...20))
    case 96: try await load()
    case 97: try await trim()
    case 98: if random.chance(10) { try await reset() }
    default: try await checkEverything()
    }
  }

  private mutating func expect(_ isSame: Bool, _ what: @autoclosure () -> String) {
    if !isSame { hasFailed = true }
    #expect(isSame, "\(what()), seed \(seed)")
  }

  // MARK: Writes

  private mutating func commit() async throws {
    var writes: [Write] = []
    for _ in 0..<random.count(1...4) {
      var write = write()
      // A precondition that depends on an earlier write of the same request would be rejected.
      if writes.contains(where: { $0.name == write.name }) { write.precondition = .none }
      writes.append(write)
    }
    await commit(writes, in: nil)
    let time = try await store.readTime()
    moments.append((time, model))
    if moments.count > Self.momentsMax { moments.remove(at: random.count(0...30)) }
  }

  /// Commits to the store and, if the model permits it, to the model.
  private mutating func commit(_ writes: [Write], in transaction: TransactionID?) async {
    var after = model
    let expected = Self.apply(writes, to: &after)
    do {
      let outcome = try await store.commit(
        writes,
        database: Self.database,
        transaction: transaction,
        auth: .admin
      )
      expect(expected == .ok, "\(writes) should fail with \(expected)")
      become(after, at: outcome.commitTime)
    } catch {
      let code = (error as? any StatusConvertible)?.statusCode
      expect(code == expected, "\(writes) failed with \(error), not \(expected)")
    }
  }

  /// Applies a commit's result to the model with its commit time.
  private mutating func become(_ after: Model, at time: Timestamp) {
    var after = after
    for (name, document) in after where model[name] != document {
      after[name]?.updateTime = time
      if document.createTime == Self.unset { after[name]?.createTime = time }
    }
    model = after
    history.append(model, at: time)
  }

  private static let unset = Timestamp(microseconds: 0)

  /// Applies writes as production documents them, in the simplest way.
  private static func apply(_ writes: [Write], to model: inout Model) -> StatusCode {
    let original = model
    for write in writes {
      switch write.precondition {
      case .exists(true): if model[write.name] == nil { return .notFound }
      case .exists(false): if model[write.name] != nil { return .alreadyExists }
      case .updateTime(let time):
        if original[write.name]?.updateTime != time { return .failedPrecondition }
      case .none: break
      }
      switch write.operation {
      case .delete: model[write.name] = nil
      case .verify: break
      case .update(let name, let fields, let mask, let transforms):
        var document =
          model[name]
          ?? FirestoreDocument(name: name, fields: [:], createTime: unset, updateTime: unset)
        if let mask {
          for path in mask { document.fields.set(fields[path], at: path) }
        } else {
          document.fields = fields
        }
        for transform in transforms {
          guard case .increment(.integer(let number)) = transform.kind else { continue }
          if case .integer(let old) = document.fields[transform.path] {
            let (sum, overflow) = old.addingReportingOverflow(number)
            document.fields.set(.integer(overflow ? .max : sum), at: transform.path)
          } else if case .double(let old) = document.fields[transform.path] {
            document.fields.set(.double(old + Double(number)), at: transform.path)
          } else {
            document.fields.set(.integer(number), at: transform.path)
          }
        }
        // A write that changes nothing does not even change the update time.
        model[name] = document
      }
    }
    return .ok
  }

  private mutating func name() -> DocumentName {
    if random.chance(60), let name = model.keys.sorted().randomElement(using: &random.generator) {
      return name
    }
    return RandomQueries.name(random.path())
  }

  private mutating func write() -> Write {
    let name = name()
    var precondition = Precondition.none
    switch random.count(0...19) {
    case 0: precondition = .exists(model[name] != nil)
    case 1: precondition = .exists(random.chance(50))
    case 2: precondition = model[name].map { .updateTime($0.updateTime) } ?? .none
    default: break
    }
    let operation: Write.Operation
    switch random.count(0...9) {
    case 0, 1: operation = .delete(name)
    case 2, 3:
      let mask = RandomQueries.paths.shuffled(using: &random.generator)
        .filter { $0.segments.first != "m" }.prefix(random.count(0...2))
      operation = .update(name, fields: random.fields(), mask: Array(mask), transforms: [])
    case 4:
      operation = .update(
        name,
        fields: [:],
        mask: [],
        transforms: [
          FieldTransform(FieldPath(["a"]), .increment(.integer(Int64(random.count(0...3)))))
        ]
      )
    default: operation = .update(name, fields: random.fields(), mask: nil, transforms: [])
    }
    return Write(operation, precondition: precondition)
  }

  // MARK: Reads

  private mutating func validQuery() -> Query? {
    let documents = model.values.sorted { $0.name < $1.name }
    guard !documents.isEmpty else { return nil }
    while true {
      let query = random.query(documents)
      if (try? runner.prepare(query)) != nil { return query }
    }
  }

  /// Compares a query at the current time or at a past time.
  private mutating func query() async throws {
    guard let query = validQuery() else { return }
    var (expected, consistency) = (model, ReadConsistency.latest)
    if random.chance(30), let moment = moments.randomElement(using: &random.generator) {
      (expected, consistency) = (moment.model, .readTime(moment.time))
    }
    var found: [FirestoreDocument] = []
    let store = store
    try await store.query(query, at: consistency, auth: .admin) { page in
      found += page.documents
      // The query sees the state at its own time, regardless of commits between two pages.
      if random.chance(30) { try await commit() }
    }
    let results = ReferenceEvaluator(query: query).results(expected.values)
    expect(
      found == results,
      "\(query) at \(consistency): \(found.map(\.name)), not \(results.map(\.name))"
    )
  }

  /// Compares a nearest-neighbor search over a query, at the current or a past time.
  private mutating func findNearest() async throws {
    guard var query = validQuery(), query.collectionID != nil else { return }
    (query.limit, query.offset, query.start, query.end) = (nil, 0, nil, nil)
    let search = random.search()
    var (expected, consistency) = (model, ReadConsistency.latest)
    if random.chance(30), let moment = moments.randomElement(using: &random.generator) {
      (expected, consistency) = (moment.model, .readTime(moment.time))
    }
    let results = ReferenceEvaluator(query: query).nearest(search, among: expected.values)
    query.findNearest = search
    do {
      let found = try await store.query(query, at: consistency, auth: .admin).documents
      expect(
        found == results,
        "\(query) at \(consistency): \(found.map(\.name)), not \(results?.map(\.name) ?? [])"
      )
    } catch let error as StatusError {
      expect(results == nil && error.statusCode == .failedPrecondition, "\(query): \(error)")
    }
  }

  private mutating func aggregate() async throws {
    guard var query = validQuery(), query.collectionID != nil else { return }
    if random.chance(40) { (query.limit, query.offset) = (nil, 0) }
    var aggregations = [Aggregation(alias: "n", kind: .count(upTo: nil))]
    // Fields that would follow the name in an index cannot be summed.
    let isBelow = query.allDescendants && !query.parent.segments.isEmpty
    // Clients cannot send a cursor that includes the implicit name.
    let isAskable = [query.start, query.end].allSatisfy {
      $0.map { $0.values.count <= query.orders.count } ?? true
    }
    let sums = !isBelow && !query.isByName && isAskable
    if sums { aggregations.append(Aggregation(alias: "s", kind: .sum(FieldPath(["a"])))) }
    var evaluation = try AggregationEvaluation(aggregations, of: query)
    try await store.query(evaluation.baseQuery, asking: query, at: .latest, auth: .admin) {
      evaluation.add($0)
    }
    if sums { query.orders = Self.orders(of: query, summing: FieldPath(["a"])) }
    let results = ReferenceEvaluator(query: query).results(model.values)
    expect(
      evaluation.results["n"] == .integer(Int64(results.count)),
      "\(query) counts \(evaluation.results) instead of \(results.count)"
    )
    guard sums else { return }
    let values = results.compactMap { $0.fields["a"] }
    let (sum, isWhole) = Self.sum(values)
    switch evaluation.results["s"] {
    case .integer(let found):
      expect(isWhole && Double(found) == sum, "\(query) sums \(found), not \(sum)")
    case .double(let found):
      // Sums far from zero depend on the order of the additions.
      let isSame = found == sum || abs(found - sum) < abs(sum) / 1e9 || found.isNaN && sum.isNaN
      expect(isSame, "\(query) sums \(found), not \(sum)")
    case let other: expect(false, "\(query) sums \(String(describing: other))")
    }
  }

  /// The orders of a query whose field is summed: the field comes last, before the name.
  private static func orders(of query: Query, summing field: FieldPath) -> [Query.Order] {
    var orders = query.orders
    let descending = orders.last?.descending ?? false
    for path in query.inequalityPaths + [field] where !orders.contains(where: { $0.path == path }) {
      orders.append(Query.Order(path, descending: descending))
    }
    return orders
  }

  /// The sum as a double, and true if only integers contribute to it.
  private static func sum(_ values: [FirestoreValue]) -> (sum: Double, isWhole: Bool) {
    var (whole, rest, isWhole) = (Int128(0), 0.0, true)
    for value in values {
      switch value {
      case .integer(let number): whole += Int128(number)
      case .double(let number): (rest, isWhole) = (rest + number, false)
      default: break
      }
    }
    return (Double(whole) + rest, isWhole && Int64(exactly: whole) != nil)
  }

  private mutating func lookUp() async throws {
    let names = Array(Set((0..<random.count(1...4)).map { _ in name() }))
    var (expected, consistency) = (model, ReadConsistency.latest)
    if random.chance(40), let moment = moments.randomElement(using: &random.generator) {
      (expected, consistency) = (moment.model, .readTime(moment.time))
    }
    let found = try await store.lookUp(names, mask: nil, at: consistency, auth: .admin).documents
    for (name, document) in found {
      expect(document == expected[name], "\(name) at \(consistency)")
    }
  }

  /// Reads in a transaction, perhaps lets another commit in between, and commits.
  ///
  /// Only an optimistic transaction gets a commit in between; any other would make that commit
  /// wait.
  private mutating func transact() async throws {
    let isOptimistic = random.chance(50)
    let id = try await store.begin(
      .readWrite(optimistic: isOptimistic),
      database: Self.database,
      auth: .admin
    )
    var reads: [(name: DocumentName, document: FirestoreDocument?)] = []
    var queries: [(query: Query, results: [FirestoreDocument])] = []
    for _ in 0..<random.count(1...2) {
      if random.chance(50), let query = validQuery() {
        let found = try await store.query(query, at: .transaction(id), auth: .admin).documents
        expect(
          found == ReferenceEvaluator(query: query).results(model.values),
          "\(query) in a transaction"
        )
        queries.append((query, found))
      } else {
        let name = name()
        let found = try await store.lookUp([name], mask: nil, at: .transaction(id), auth: .admin)
        expect(found.documents[0].document == model[name], "\(name) in a transaction")
        reads.append(found.documents[0])
      }
    }
    let before = model
    if isOptimistic, random.chance(60) { try await commit() }
    if random.chance(15) {
      return try await store.rollback(id, database: Self.database)
    }
    let isSame =
      reads.allSatisfy { model[$0.name] == $0.document }
      && queries.allSatisfy {
        ReferenceEvaluator(query: $0.query).results(model.values) == $0.results
      }
    let writes = [write()]
    var after = model
    let expected = Self.apply(writes, to: &after)
    if !isSame {
      let refusal = await #expect(throws: StatusError.self) {
        try await store.commit(writes, database: Self.database, transaction: id, auth: .admin)
      }
      expect(refusal?.statusCode == .aborted, "a transaction over what is no more")
    } else if before == model {
      await commit(writes, in: id)
    } else {
      // The other change may lie in a queried range without changing the result.
      do {
        let outcome = try await store.commit(
          writes,
          database: Self.database,
          transaction: id,
          auth: .admin
        )
        expect(expected == .ok, "\(writes) should fail with \(expected)")
        become(after, at: outcome.commitTime)
      } catch let error as StatusError {
        expect(error.statusCode == .aborted || error.statusCode == expected, "\(error)")
      }
    }
  }

  // MARK: Listeners

  private static let clientsMax = 5

  /// Performs a random action of a client.
  private mutating func listen() async {
    if clients.count < Self.clientsMax, random.chance(20) {
      let client = ListeningClient(database: Self.database, isSlow: random.chance(30))
      await client.resume(on: store)
      clients.append(client)
    }
    guard let client = clients.randomElement(using: &random.generator) else { return }
    switch random.count(0...9) {
    case 0..<4:
      if random.chance(30) {
        await client.listen(to: .documents((0..<random.count(1...3)).map { _ in name() }))
      } else if let query = validQuery() {
        await client.listen(to: .query(query))
      }
    case 4: await client.removeTarget(random.count(0...9))
    case 5: client.isPaused.withLock { $0.toggle() }
    case 6:
      await client.disconnect()
      if random.chance(30) { client.forgetOne(random.count(0...9)) }
      await client.resume(on: store)
    case 7:
      await client.disconnect()
      clients.removeAll { $0 === client }
    default: break
    }
  }

  /// Lets every listener catch up and compares all their snapshots with the history.
  mutating func checkListeners() async throws {
    let time = try await store.readTime()
    for client in clients {
      client.isPaused.withLock { $0 = false }
      let isCurrent = await client.catchUp(with: time) { [store] in
        try? await store.hub.sendReadTimeOnce(store)
      }
      expect(isCurrent, "a listener does not catch up: \(client.summary)")
      for fault in client.takeFaults() { expect(false, fault) }
      for shown in client.takeShown() {
        let models = history.models(at: shown.time)
        let isTrue = models.contains { model in
          shown.documents == Self.documents(of: shown.target, in: model)
        }
        let expected = models.first.map { Self.documents(of: shown.target, in: $0) } ?? [:]
        expect(
          isTrue,
          """
          \(shown.target) at \(shown.time) shows \
          \(shown.documents.filter { expected[$0] != $1 }.mapValues(\.updateTime)) instead of \
          \(expected.filter { shown.documents[$0] != $1 }.mapValues(\.updateTime))
          """
        )
        if hasFailed { return }
      }
    }
    history.forget(before: time)
    if clients.isEmpty { expect(store.hub.isEmpty, "views are left behind") }
  }

  private static func documents(of target: ListenTarget, in model: Model) -> Model {
    switch target {
    case .documents(let names): return model.filter { names.contains($0.key) }
    case .query(var query):
      query.projection = nil
      let results = ReferenceEvaluator(query: query).results(model.values)
      return Dictionary(uniqueKeysWithValues: results.map { ($0.name, $0) })
    }
  }

  // MARK: Bulk operations

  private mutating func load() async throws {
    let recordsEvents = random.chance(50)
    var documents: Model = [:]
    for _ in 0..<random.count(1...5) {
      let name = name()
      documents[name] = FirestoreDocument(
        name: name,
        fields: random.fields(),
        createTime: Timestamp(microseconds: 100),
        // Clients assume that a document with a known update time has not changed.
        updateTime: Timestamp(microseconds: Int64(random.count(200...1_000_000)))
      )
    }
    let before = try await store.readTime()
    _ = try await store.load(
      Array(documents.values),
      into: Self.database,
      recordsEvents: recordsEvents
    )
    model.merge(documents) { $1 }
    history.append(model, between: before, try await store.readTime())
    if !recordsEvents { moments = [] }
  }

  private mutating func trim() async throws {
    let records = try await storage.read { try CommitLog.records(after: 0, limit: 200, in: $0) }
    guard let last = records.last else { return }
    // Retention follows the tailer, so it never trims records that listeners have not received.
    await eventually("the listeners have all records") {
      store.hub.withTable { $0.sequence } >= last.sequence
    }
    var batch = StorageBatch()
    CommitLog.trim(through: last, in: &batch)
    for record in records { PastVersions.forget(record, in: &batch) }
    try await storage.commit(batch)
    moments.removeAll { $0.time < last.commitTime }
  }

  private mutating func reset() async throws {
    let before = try await store.readTime()
    try await store.reset(Self.database)
    model = [:]
    history.append(model, between: before, try await store.readTime())
    moments = []
  }

  /// Compares all documents, at the current or a past time, page by page.
  mutating func checkEverything() async throws {
    var (expected, time) = (model, try await store.readTime())
    if random.chance(50), let moment = moments.randomElement(using: &random.generator) {
      (expected, time) = (moment.model, moment.time)
    }
    var found: Model = [:]
    var next: [UInt8]?
    repeat {
      let page = try await store.page(of: Self.database, from: next, at: time)
      for document in page.documents { found[document.name] = document }
      next = page.next
    } while next != nil
    expect(found == expected, "everything at \(time)")
  }
}
