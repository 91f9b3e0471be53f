package import AuthAccounts
package import DatabaseTree
import JSONText
package import DocumentModel
package import DocumentStore
import FlowControl
import Foundation
import StatusCodes
package import StorageEngine
import Synchronization
package import VectorIndex

/// The importer of exports into a store.
///
/// Before the first write, the whole export is checked: versions, checksums, counts and every line.
/// The data are then written in batches. An interrupted import leaves a record in the storage until
/// an import completes.
package final class DataImporter: Sendable {
  private let store: DocumentDatabase
  private let accounts: AccountStore
  private let database: RealtimeDatabase
  private let vectors: VectorCatalog
  private let storage: any OrderedStorage
  private let project: String
  private let now: @Sendable () -> Timestamp
  private let isRunning = Mutex(false)
  /// The progress of the import that runs.
  package let progress = ImportProgress()

  /// Creates an importer into the suite's data; documents of other projects are moved to `project`.
  package init(
    store: DocumentDatabase,
    accounts: AccountStore,
    database: RealtimeDatabase,
    vectors: VectorCatalog,
    storage: any OrderedStorage,
    project: String,
    now: @escaping @Sendable () -> Timestamp
  ) {
    self.store = store
    self.accounts = accounts
    self.database = database
    self.vectors = vectors
    self.storage = storage
    self.project = project
    self.now = now
  }

  /// The treatment of existing data and triggers during an import.
  package struct Options: Sendable, Hashable {
    /// Records an event for each changed document and node, so that triggers run.
    package var firesTriggers: Bool
    /// Empties the databases in the export first, and all indexes if the export contains vectors.
    ///
    /// An export without a single document empties the database `(default)`. Users are deleted
    /// first if the export contains users, and all instances of the Realtime Database if it
    /// contains some.
    ///
    /// Otherwise, the import replaces documents, vectors and the trees of instances with the same
    /// names and keeps all others.
    package var replaces: Bool
    /// The instance of the Realtime Database whose tree the imported file is; nil for an export or
    /// a file of documents.
    package var instance: String?
    /// False before the suite's services run; then no triggers run either.
    package var isServing: Bool

    /// Creates options; by default no triggers run and no data are removed.
    package init(
      firesTriggers: Bool = false,
      replaces: Bool = false,
      instance: String? = nil,
      isServing: Bool = true
    ) {
      self.firesTriggers = firesTriggers
      self.replaces = replaces
      self.instance = instance
      self.isServing = isServing
    }
  }

  /// The result of an import.
  package struct Summary: Codable, Sendable, Hashable {
    /// The absolute path of the export.
    package var path: String
    /// The number of documents read.
    ///
    /// `changedDocuments` is the number of them that were not already stored with the same times.
    package var documents: Int
    package var changedDocuments: Int
    package var users: Int
    /// The number of instances of the Realtime Database.
    package var instances = 0
    package var vectors: Int
    /// The names of the export's parts that Hearth has no emulator for, such as `storage`.
    package var skippedParts: [String] = []
  }

  /// An import that did not complete.
  package struct Unfinished: Codable, Sendable, Hashable {
    package var path: String
    package var startTime: String
    /// The options of the import; nil in notes of older versions.
    package var firesTriggers: Bool?
    package var replaces: Bool?
    package var instance: String?

    /// The command that completes the import.
    package var command: String {
      "hearth import \(path)" + (instance.map { " --instance \($0)" } ?? "")
        + (replaces == true ? " --replace" : "") + (firesTriggers == true ? " --fire-triggers" : "")
    }
  }

  /// Returns the imports that were interrupted and may have left partial data, by path.
  package static func unfinished(in storage: any OrderedStorage) async throws -> [Unfinished] {
    let notes = try await storage.read { snapshot in
      var notes: [[UInt8]] = []
      try snapshot.scan(noteKeyspace, from: nil, to: nil, descending: false) { _, value in
        notes.append(value.bytes)
        return true
      }
      return notes
    }
    return try notes.map { try Unfinished(decodingJSON: $0) }
  }

  /// Imports an export of Hearth, of the official emulator or of `gcloud firestore export`, or a
  /// file of documents or of a tree of the Realtime Database.
  ///
  /// Throws before it writes anything if the export is incomplete or a vector index does not fit.
  /// The error of a damaged file names the file and the line. Throws `ABORTED` while another import
  /// runs.
  package func `import`(_ path: String, _ options: Options) async throws -> Summary {
    guard isRunning.withLock({ $0.begin() }) else {
      throw StatusError(.aborted, "Another import is under way; wait for its end.")
    }
    defer {
      isRunning.withLock { $0 = false }
      progress.end()
    }
    return try await withTaskExecutorPreference(DiskExecutor.shared) {
      let path = URL(filePath: path).standardizedFileURL.path
      if let instance = options.instance {
        return try await importTree(path, instance, options)
      }
      if !ExportSource.isMetadataFile(path), SeedFile.isFile(path) {
        return try await importSeed(path, options)
      }
      let source = try ExportSource(path: path)
      var summary = Summary(
        path: path,
        documents: 0,
        changedDocuments: 0,
        users: source.accounts?.users.count ?? 0,
        instances: source.database?.files.count ?? 0,
        vectors: 0,
        skippedParts: source.skippedParts
      )
      let found = try await check(documentsOf: source)
      try check(source.vectors, options)
      try await source.database?.check()
      if !options.replaces { try await source.accounts?.check(against: accounts) }
      try await begin(path, options)
      if options.replaces {
        let names = found.union(try databases(of: source).map(\.name))
        // An export of nothing names no database, but still stands for an empty one.
        let hasDocuments = source.documents != nil || source.official != nil
        let emptied = names.isEmpty && hasDocuments ? [DatabaseName(project: project)] : names
        for name in emptied { try await store.reset(name) }
      }
      try await load(documentsOf: source, options, &summary)
      if options.replaces, source.accounts != nil { try await accounts.deleteAll() }
      try await source.accounts?.load(into: accounts)
      try await source.database?.load(into: database, options)
      try await load(source.vectors, options, &summary)
      try await end(path)
      return summary
    }
  }

  /// Imports a file as the tree of one instance of the Realtime Database.
  private func importTree(
    _ path: String,
    _ instance: String,
    _ options: Options
  ) async throws -> Summary {
    var options = options
    // The file stands for its instance only.
    options.replaces = false
    let files = DatabaseFiles(path: path, instance: instance)
    try await files.check()
    try await begin(path, options)
    try await files.load(into: database, options)
    try await end(path)
    return Summary(
      path: path,
      documents: 0,
      changedDocuments: 0,
      users: 0,
      instances: 1,
      vectors: 0
    )
  }

  // MARK: - Documents

  /// Imports a file of documents written by hand, whose times are now.
  private func importSeed(_ path: String, _ options: Options) async throws -> Summary {
    let database = DatabaseName(project: project)
    let seed = try SeedFile(path: path, database: database, time: now())
    for document in seed.documents {
      do {
        try DocumentDatabase.check(document)
      } catch {
        throw StatusError(error.statusCode, "\(path): \(error.statusMessage)")
      }
    }
    var summary = Summary(path: path, documents: 0, changedDocuments: 0, users: 0, vectors: 0)
    try await begin(path, options)
    if options.replaces { try await store.reset(database) }
    for start in stride(from: 0, to: seed.documents.count, by: Self.batchMax) {
      let batch = Array(seed.documents[start..<min(start + Self.batchMax, seed.documents.count)])
      summary.changedDocuments += try await load(batch, database, options)
      summary.documents += batch.count
    }
    try await end(path)
    return summary
  }

  /// Checks every document of an export and returns their databases.
  private func check(documentsOf source: ExportSource) async throws -> Set<DatabaseName> {
    var databases: Set<DatabaseName> = []
    try await forEachBatch(of: source, .checking) { documents in
      databases.formUnion(documents.lazy.map(\.name.database))
    }
    return databases
  }

  private func load(
    documentsOf source: ExportSource,
    _ options: Options,
    _ summary: inout Summary
  ) async throws {
    try await forEachBatch(of: source, .writing) { documents in
      var rest = documents[...]
      while let database = rest.first?.name.database {
        let batch = Array(rest.prefix { $0.name.database == database })
        rest = rest.dropFirst(batch.count)
        summary.changedDocuments += try await load(batch, database, options)
        summary.documents += batch.count
      }
    }
  }

  /// Passes the documents of an export to `body`, in batches and in their order.
  ///
  /// Meanwhile the next batches are decoded, and checked in the first phase, one on each processor.
  /// Throws the error of the first record that is damaged or does not pass its check.
  private func forEachBatch(
    of source: ExportSource,
    _ phase: ImportProgress.Phase,
    _ body: ([FirestoreDocument]) async throws -> Void
  ) async throws {
    let databases = try databases(of: source)
    var parts: [any DocumentRecords] = databases.map(DocumentLines.init)
    if let export = source.official {
      parts.append(OfficialRecords(export, project: project, time: now()))
    }
    let bytes = databases.reduce(source.official?.bytes ?? 0) { $0 + $1.bytes }
    var bytesBefore = 0
    for part in parts {
      try await forEachBatch(of: part, isChecked: phase == .checking) { documents, bytesRead in
        try await body(documents)
        progress.set(phase, bytesBefore + bytesRead, of: bytes)
      }
      bytesBefore += part.bytesRead
    }
  }

  private func forEachBatch(
    of records: some DocumentRecords,
    isChecked: Bool,
    _ body: (_ documents: [FirestoreDocument], _ bytesRead: Int) async throws -> Void
  ) async throws {
    let batches = RecordBatches(
      of: records,
      recordsMax: Self.batchMax,
      bytesMax: Self.batchBytesMax
    )
    try await forEachMapped(
      { try batches.next() },
      width: ProcessInfo.processInfo.activeProcessorCount
    ) { [makeDecoder = records.makeDecoder] batch in
      let documents = try batch.documents(decode: makeDecoder()) { document throws(StatusError) in
        if isChecked { try DocumentDatabase.check(document) }
      }
      return (documents, batch.bytesRead)
    } _: { documents, bytesRead in
      try await body(documents, bytesRead)
    }
  }

  private func databases(of source: ExportSource) throws -> [ExportedDatabase] {
    guard let documents = source.documents else { return [] }
    return try documents.metadata.databases.map {
      try ExportedDatabase($0, folder: documents.folder, project: project)
    }
  }

  /// Loads a batch; waits and retries for some time if the triggers have fallen behind.
  private func load(
    _ batch: [FirestoreDocument],
    _ database: DatabaseName,
    _ options: Options
  ) async throws -> Int {
    var waits = 0
    while true {
      try Task.checkCancellation()
      do {
        return try await store.load(batch, into: database, recordsEvents: options.firesTriggers)
      } catch let error as StatusError
        where error.statusCode == .resourceExhausted && waits < Self.waitsMax
      {
        waits += 1
        try await Task.sleep(for: .seconds(1))
      }
    }
  }

  // MARK: - Vectors

  private func check(_ source: ExportSource.Vectors?, _ options: Options) throws {
    guard let source else { return }
    var dimensions: [String: Int] = [:]
    for index in source.metadata.indexes {
      let description = try index.description
      try VectorCatalog.check(description)
      dimensions[index.name] = index.dimension
      if !options.replaces { try checkFit(of: description) }
    }
    try forEachVector(of: source) { reader, row in
      guard let dimension = dimensions[row.index] else {
        throw reader.invalid("the index \"\(row.index)\" is not in the metadata")
      }
      do {
        try VectorCatalog.check(row.record, dimension: dimension)
      } catch let error as StatusError {
        throw reader.invalid(error.statusMessage)
      }
    }
  }

  /// Throws if there is an index with the name of an imported one that cannot hold its vectors.
  private func checkFit(of imported: VectorIndexDescription) throws {
    guard let existing = vectors.indexes().first(where: { $0.name == imported.name }),
      existing.dimension != imported.dimension || existing.metric != imported.metric
        || existing.field != imported.field
    else { return }
    throw StatusError(
      .failedPrecondition,
      "The vector index \(imported.name) is there already with another dimension, metric or "
        + "field; delete it, or import with --replace."
    )
  }

  private func load(
    _ source: ExportSource.Vectors?,
    _ options: Options,
    _ summary: inout Summary
  ) async throws {
    guard let source else { return }
    if options.replaces { try await vectors.removeAll() }
    for index in source.metadata.indexes {
      let description = try index.description
      if try await !Self.creates({ try await vectors.create(description) }) {
        try checkFit(of: description)
      }
    }
    // Namespaces are created before vectors, which would create them without their declared fields.
    for index in source.metadata.indexes {
      for namespace in index.namespaces ?? [] {
        _ = try await Self.creates {
          try await vectors.createNamespace(
            namespace.name,
            index: index.name,
            filterableFields: namespace.filterableFields
          )
        }
      }
    }
    for file in source.metadata.files {
      let reader = try ExportFileReader(
        path: "\(source.folder)/\(file.name)",
        lineBytesMax: VectorLine.bytesMax
      )
      var batch: [VectorRow] = []
      while true {
        try Task.checkCancellation()
        let row = try reader.next().map { line in try VectorLine.row(line) }
        let isFull = batch.count >= Self.vectorBatchMax
        if let last = batch.last,
          isFull || row?.index != last.index || row?.namespace != last.namespace
        {
          try await vectors.upsert(
            batch.map(\.record),
            index: last.index,
            namespace: last.namespace
          )
          summary.vectors += batch.count
          batch = []
        }
        guard let row else { break }
        batch.append(row)
      }
    }
  }

  /// Runs a creation; returns false if a client has created the same thing before.
  private static func creates(_ create: () async throws -> Void) async throws -> Bool {
    do {
      try await create()
      return true
    } catch let error as StatusError where error.statusCode == .alreadyExists {
      return false
    }
  }

  private func forEachVector(
    of source: ExportSource.Vectors,
    _ body: (ExportFileReader, VectorRow) throws -> Void
  ) throws {
    for file in source.metadata.files {
      let reader = try ExportFileReader(
        path: "\(source.folder)/\(file.name)",
        lineBytesMax: VectorLine.bytesMax
      )
      while let line = try reader.next() {
        do {
          try body(reader, try VectorLine.row(line))
        } catch let error as StatusError where !error.statusMessage.hasPrefix(reader.path) {
          throw reader.invalid(error.statusMessage)
        }
      }
      try reader.check(against: file)
    }
  }

  // MARK: - Record of an unfinished import

  private func begin(_ path: String, _ options: Options) async throws {
    let note = Unfinished(
      path: path,
      startTime: now().description,
      firesTriggers: options.firesTriggers,
      replaces: options.replaces,
      instance: options.instance
    )
    var batch = StorageBatch()
    batch.put(Self.noteKeyspace, Self.key(path), try note.jsonBytes())
    try await storage.commit(batch)
  }

  /// Deletes the record of the import; records of other paths stay.
  ///
  /// This commit is synced, so the import's earlier relaxed commits become durable too.
  private func end(_ path: String) async throws {
    var batch = StorageBatch()
    batch.delete(Self.noteKeyspace, Self.key(path))
    // Older versions had one record, which said its path in its value only.
    if let old = try await storage.read({ try $0.get(Self.noteKeyspace, [])?.bytes }),
      try Unfinished(decodingJSON: old).path == path
    {
      batch.delete(Self.noteKeyspace, [])
    }
    try await storage.commit(batch)
  }

  private static func key(_ path: String) -> [UInt8] { Array(path.utf8) }

  private static let noteKeyspace = Keyspace("imports")
  /// The maximum number of documents in one commit, which blocks other writers.
  ///
  /// `batchBytesMax` is the maximum size of their lines.
  private static let batchMax = 500
  private static let batchBytesMax = 4 << 20
  private static let vectorBatchMax = 200
  /// The number of seconds that an import with events waits for the event log.
  private static let waitsMax = 60
}

extension Bool {
  /// Sets the value to true; returns false if it was already true.
  fileprivate mutating func begin() -> Bool {
    defer { self = true }
    return !self
  }
}

extension VectorMetadata.Index {
  /// The description of the index for the catalog; throws for an unknown metric.
  var description: VectorIndexDescription {
    get throws {
      guard let metric = VectorIndexDescription.Metric(rawValue: metric) else {
        throw StatusError.invalidArgument("The vector index \(name) has no metric \"\(metric)\".")
      }
      var description = VectorIndexDescription(
        name: name,
        dimension: dimension,
        metric: metric,
        tags: tags,
        isProtected: isProtected
      )
      if let field { description.field = field }
      if let cloud { description.cloud = cloud }
      if let region { description.region = region }
      return description
    }
  }
}
