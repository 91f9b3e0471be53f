import AuthAccounts
import DataExport
import DatabaseTree
import DocumentModel
import DocumentStore
import EventLog
import Foundation
import Identity
import Logging
import QueryEngine
import StatusCodes
import StorageEngine
import Synchronization
import TestSupport
import VectorIndex

let database = DatabaseName(project: "p")

/// An in-memory store with vectors, and its exporter and importer.
struct Fixture {
  let storage = FaultyStorage()
  let store: DocumentDatabase
  let accounts: AccountStore
  let trees: RealtimeDatabase
  let vectors: VectorCatalog
  let exporter: DataExporter
  let importer: DataImporter

  init(project: String = "p", fileBytesMax: Int = 4000) {
    let wall = Mutex(Int64(1_700_000_000_000_000))
    let now: @Sendable () -> Timestamp = {
      wall.withLock { time in
        time += 1000
        return Timestamp(microseconds: time)
      }
    }
    store = DocumentDatabase(
      storage: storage,
      queryRunner: QueryRunner(logger: .silent),
      tailer: EventTailer(storage: storage, logger: .silent),
      now: now,
      clock: ContinuousClock(),
      configuration: .init(queryPageDocumentsMax: 7),
      logger: .silent
    )
    accounts = AccountStore(
      storage: storage,
      tailer: EventTailer(storage: storage, logger: .silent),
      project: project,
      now: now
    )
    trees = RealtimeDatabase(
      storage: storage,
      tailer: EventTailer(storage: storage, logger: .silent),
      project: project,
      now: now,
      captureDepth: { _, _ in nil },
      logger: .silent
    )
    vectors = VectorCatalog(storage: storage)
    exporter = DataExporter(
      store: store,
      accounts: accounts,
      database: trees,
      vectors: vectors,
      version: "test",
      fileBytesMax: fileBytesMax
    )
    importer = DataImporter(
      store: store,
      accounts: accounts,
      database: trees,
      vectors: vectors,
      storage: storage,
      project: project,
      now: now
    )
  }

  func write(_ documents: [FirestoreDocument]) async throws {
    let writes = documents.map {
      Write(.update($0.name, fields: $0.fields, mask: nil, transforms: []))
    }
    _ = try await store.commit(writes, database: database, transaction: nil, auth: .admin)
  }

  /// Returns all stored documents.
  func documents(_ database: DatabaseName = database) async throws -> [FirestoreDocument] {
    let time = try await store.readTime()
    var documents: [FirestoreDocument] = []
    var next: [UInt8]?
    repeat {
      let page = try await store.page(of: database, from: next, at: time)
      documents += page.documents
      next = page.next
    } while next != nil
    return documents
  }

  func allVectors() async throws -> [VectorRow] {
    try await vectors.withView { view in
      var rows: [VectorRow] = []
      view.forEachRow { rows.append($0) }
      return rows
    }
  }

  func eventsCount() async throws -> Int {
    try await storage.read { try CommitLog.records(after: 0, limit: 10_000, in: $0) }
      .reduce(0) { $0 + $1.changes.count }
  }
}

func document(_ path: String, _ fields: MapValue = [:]) -> FirestoreDocument {
  FirestoreDocument(
    name: DocumentName(database: database, path: ResourcePath(slashSeparated: path)),
    fields: fields,
    createTime: Timestamp(microseconds: 0),
    updateTime: Timestamp(microseconds: 0)
  )
}

/// Returns the status error that `body` throws; nil if it succeeds.
func failure(_ body: () async throws -> some Any) async -> (any StatusConvertible)? {
  do {
    _ = try await body()
    return nil
  } catch {
    return error as? any StatusConvertible ?? StatusError(.internal, "\(error)")
  }
}

/// Returns the files of a folder at any depth, by path, with their contents.
func files(in folder: String) throws -> [String: Data] {
  var found: [String: Data] = [:]
  for name in try FileManager.default.subpathsOfDirectory(atPath: folder) {
    var isFolder: ObjCBool = false
    _ = FileManager.default.fileExists(atPath: "\(folder)/\(name)", isDirectory: &isFolder)
    if !isFolder.boolValue {
      found[name] = FileManager.default.contents(atPath: "\(folder)/\(name)")
    }
  }
  return found
}

/// Documents with every type of value and unusual IDs.
let samples: [FirestoreDocument] = {
  var deep = FirestoreValue.string("deepest")
  for _ in 0..<19 { deep = .map(["d": deep]) }
  return [
    document(
      "types/all",
      [
        "null": .null, "true": .boolean(true), "false": .boolean(false), "zero": .integer(0),
        "least": .integer(.min), "most": .integer(.max),
        "beyond2^53": .integer(9_007_199_254_740_993),
        "nan": .double(.nan), "minusZero": .double(-0.0), "infinity": .double(.infinity),
        "minusInfinity": .double(-.infinity), "tiny": .double(.leastNonzeroMagnitude),
        "huge": .double(.greatestFiniteMagnitude), "third": .double(1.0 / 3), "three": .double(3),
        "earliest": .timestamp(Timestamp(microseconds: -62_135_596_800_000_000)),
        "latest": .timestamp(Timestamp(microseconds: 253_402_300_799_999_999)),
        "empty": .string(""), "text": .string("Grüße \u{1F600}\n\r\t\"\\/\u{0}\u{7F}\u{2028}"),
        "composed": .string("\u{E9}"), "decomposed": .string("e\u{301}"),
        "noBytes": .bytes([]), "bytes": .bytes(Array(0...255)),
        "reference": .reference(document("users/ü/x/__id-5__").name),
        "elsewhere": .reference(
          DocumentName(
            database: DatabaseName(project: "other", database: "d2"),
            path: ResourcePath(["a", "b"])
          )
        ),
        "point": .geoPoint(GeoPoint(latitude: -90, longitude: 180)),
        "origin": .geoPoint(GeoPoint(latitude: 0, longitude: -0.0)),
        "noElements": .array([]), "array": .array([.null, .integer(1), .map(["a": .array([])])]),
        "noEntries": .map([:]), "map": .map(["a.b": .null, "`": .boolean(true), " ": .integer(1)]),
        "vector": .vector([1, -0.0, 0.1]), "deep": deep,
      ]
    ),
    document("types/none"),
    document("c/__id9223372036854775807__"), document("c/__id-9223372036854775808__"),
    document("c/e\u{301}"), document("c/\u{E9}"), document("c/ "), document("c/a.b:c%2F"),
    document("c/\u{1F600}", ["\u{1F600}.x": .integer(1)]), document("c/\u{1}\u{0}\u{7F}"),
    document("c/d/s/e/t/f", ["n": .integer(1)]),
    document("c/" + String(repeating: "x", count: 1500)),
  ]
}()
