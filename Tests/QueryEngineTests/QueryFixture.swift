import DocumentModel
import Events
import Logging
import QueryEngine
import QueryModel
import StorageEngine
import Synchronization

/// A store with a query engine, written to as `DocumentDatabase` does.
///
/// `@unchecked`: a test uses it from one task at a time.
final class QueryFixture: @unchecked Sendable {
  let storage: MemoryStorage
  let engine: QueryRunner
  let order = FixtureOrder()
  var model: [DocumentName: FirestoreDocument] = [:]
  private var time: Int64 = 0

  static let database = RandomQueries.database

  /// Creates a fixture, by default with an empty store and with indexes that cost nothing.
  init(
    _ configuration: QueryRunner.Configuration = .init(),
    indexCost: Int = 0,
    storage: MemoryStorage = MemoryStorage()
  ) async throws {
    self.storage = storage
    var configuration = configuration
    configuration.indexCost = indexCost
    engine = QueryRunner(configuration: configuration, logger: Logger(label: "test"))
    try await engine.load(from: storage)
  }

  /// Builds the indexes that queries have requested.
  func buildIndexes(commitsMax: Int = .max) async throws {
    try await engine.buildIndexes(in: order, commitsMax: commitsMax)
  }

  static func name(_ path: String) -> DocumentName { RandomQueries.name(path) }

  /// Sets documents, or deletes them where the fields are nil, in one commit.
  func write(_ writes: [(String, MapValue?)]) async throws {
    time += 1
    let now = Timestamp(microseconds: time)
    var changes: [DocumentChange] = []
    for (path, fields) in writes {
      let name = Self.name(path)
      let before = model[name]
      let after = fields.map {
        FirestoreDocument(
          name: name,
          fields: $0,
          createTime: before?.createTime ?? now,
          updateTime: now
        )
      }
      model[name] = after
      guard before != nil || after != nil else { continue }
      changes.append(DocumentChange(name: name, before: before, after: after))
    }
    let storage = storage
    let committed = changes
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      order.alone {
        let maintainer = engine.indexMaintainer
        var batch = StorageBatch()
        for change in committed {
          let key = DocumentKeys.key(change.name)
          if let after = change.after {
            batch.put(DocumentKeys.keyspace, key, DocumentKeys.encode(after))
          } else {
            batch.delete(DocumentKeys.keyspace, key)
          }
          maintainer.append(change, to: &batch)
        }
        storage.submit(batch, expecting: [], durability: .synced) { result in
          continuation.resume(with: result.map { _ in })
        }
      }
    }
  }

  func set(_ path: String, _ fields: MapValue = [:]) async throws {
    try await write([(path, fields)])
  }

  /// Runs a query and returns its results and its cost.
  func run(
    _ query: Query,
    overlay: [DocumentName: FirestoreDocument?] = [:]
  ) async throws -> (documents: [FirestoreDocument], statistics: QueryStatistics) {
    let prepared = try engine.prepare(query)
    let engine = engine
    return try await storage.read { snapshot in
      var documents: [FirestoreDocument] = []
      let statistics = try engine.run(prepared, on: snapshot, overlay: overlay) { document in
        documents.append(document)
        return true
      }
      return (documents, statistics)
    }
  }

  /// Runs a query and returns the paths of its results.
  func paths(_ query: Query) async throws -> [String] {
    try await run(query).documents.map(\.name.path.description)
  }

  /// Runs a query and returns the IDs of its results.
  func ids(_ query: Query) async throws -> [String] {
    try await run(query).documents.map(\.name.id)
  }
}

extension Query {
  /// Creates a query over the collection `c`, or over its collection group.
  static func c(
    _ filter: Filter? = nil,
    group: Bool = false,
    parent: String = "",
    orders: [Order] = [],
    start: Cursor? = nil,
    end: Cursor? = nil,
    offset: Int = 0,
    limit: Int? = nil,
    projection: [FieldPath]? = nil
  ) -> Query {
    Query(
      database: QueryFixture.database,
      parent: ResourcePath(slashSeparated: parent),
      collectionID: "c",
      allDescendants: group,
      filter: filter,
      orders: orders,
      start: start,
      end: end,
      offset: offset,
      limit: limit,
      projection: projection
    )
  }
}

extension Query.Filter {
  /// Creates a comparison of a top-level field.
  static func field(_ name: String, _ comparison: Query.FieldOperator, _ value: FirestoreValue)
    -> Self
  {
    .field(FieldPath([name]), comparison, value)
  }

  /// Creates a unary filter on a top-level field.
  static func unary(_ name: String, _ unary: Query.UnaryOperator) -> Self {
    .unary(FieldPath([name]), unary)
  }
}

extension Query.Order {
  /// Creates an order by a top-level field.
  static func by(_ name: String, descending: Bool = false) -> Self {
    Self(FieldPath([name]), descending: descending)
  }
}

extension FirestoreValue {
  /// A reference to a document of the fixture's database.
  static func name(_ path: String) -> FirestoreValue { .reference(QueryFixture.name(path)) }
}

/// A commit order that runs one step at a time.
final class FixtureOrder: CommitOrder {
  private let steps = Mutex<Void>(())

  func alone<Result>(_ step: () throws -> sending Result) rethrows -> sending Result {
    try steps.withLock { _ in try step() }
  }
}
