package import DocumentModel
import EventLog
import Events
package import Identity
package import QueryEngine
import StatusCodes
import StorageEngine
import Synchronization

package struct QueryPage: Sendable {
  /// The results in order, projected; empty only in the single page of a query without results.
  package var documents: [FirestoreDocument]
  /// The number of results skipped by the query's offset; zero except in the first page.
  package var skipped: Int
  /// The number of documents and index entries read so far, whether they matched or not.
  package var scanned: Int
  /// The time as of which the whole result is valid; the same for all pages.
  package var readTime: Timestamp
  /// The transaction that the query began, if it was asked to; only in the first page.
  package var newTransaction: TransactionID?
  /// The sequence number of the last commit that the query's first part has seen.
  ///
  /// It is the same for all pages.
  package var sequence: UInt64
  package var isLast: Bool
  /// The memory of this page's documents and of what later pages need, in bytes.
  package var heldBytes = 0
  /// The part of `heldBytes` for later pages: sorted results and earlier versions of documents.
  package var keptBytes = 0

  /// The memory of a document, decoded and as a message, for each byte of its stored size.
  ///
  /// Measured with documents of 20 fields: two to four.
  static let memoryPerStoredByte = 4
}

extension DocumentDatabase {
  /// Runs a query and collects its results in one page of limited size.
  package func query(
    _ query: Query,
    at consistency: ReadConsistency,
    auth: AuthContext
  ) async throws -> QueryPage {
    try await collect(query, at: consistency, auth: auth) { _ in }
  }

  /// Runs a query and collects its results in one page of limited size.
  ///
  /// `check` receives the number of bytes collected so far and may throw.
  package func collect(
    _ query: Query,
    at consistency: ReadConsistency,
    auth: AuthContext,
    checking check: (_ bytes: Int) throws -> Void
  ) async throws -> QueryPage {
    var documents: [FirestoreDocument] = []
    var bytes = 0
    var scanned = 0
    var first: QueryPage?
    try await self.query(query, at: consistency, auth: auth) { page in
      for document in page.documents {
        bytes += StorageSize.document(document.name, document.fields)
      }
      guard bytes <= configuration.queryResultBytesMax else {
        throw StatusError(
          .resourceExhausted,
          "The query's results are larger than \(configuration.queryResultBytesMax) bytes; "
            + "add a limit."
        )
      }
      try check(bytes)
      documents += page.documents
      scanned = page.scanned
      if first == nil { first = page }
    }
    guard var page = first else { throw StatusError(.internal, "A query has at least one page.") }
    page.documents = documents
    page.scanned = scanned
    page.isLast = true
    page.heldBytes = bytes
    return page
  }

  /// Returns the indexes that production would use for a query.
  ///
  /// Throws the errors that running the query would throw before its first read.
  package func plan(_ query: Query, auth: AuthContext) throws -> [CompositeIndex] {
    try authorize(.explain, in: query.database, auth)
    try NameValidation.check(parent: query.parent, in: query.database)
    return IndexNeed.all(of: try queryRunner.prepare(query)).flatMap(\.used)
  }

  /// Runs a query page by page, so that neither memory nor a storage snapshot is held for long.
  ///
  /// All pages show the same read time, whatever is committed while the query runs. The work is
  /// done in parts of bounded size, so that other work can run in between and cancellation is
  /// noticed soon. There is at least one page; the next one is read after `body` returns. If a page
  /// or `body` fails, a transaction that the query began ends. `count` receives the memory that the
  /// query holds after each part, in bytes, and may throw.
  package func query(
    _ query: Query,
    at consistency: ReadConsistency,
    auth: AuthContext,
    counting count: (_ heldBytes: Int) throws -> Void = { _ in },
    _ body: (QueryPage) async throws -> Void
  ) async throws {
    try await self.query(query, asking: query, at: consistency, auth: auth, counting: count, body)
  }

  /// Runs a query page by page; access is decided for `asked`, the query that the client sent.
  package func query(
    _ query: Query,
    asking asked: Query,
    at consistency: ReadConsistency,
    auth: AuthContext,
    counting count: (_ heldBytes: Int) throws -> Void = { _ in },
    _ body: (QueryPage) async throws -> Void
  ) async throws {
    try NameValidation.check(parent: query.parent, in: query.database)
    let prepared = try queryRunner.prepare(query)
    if let search = query.findNearest {
      return try await find(search, in: prepared, asking: asked, at: consistency, auth: auth, body)
    }
    let reads = ReadSet(ranges: [QueryRange(prepared)])
    let first = try await read(
      reads,
      query.database,
      at: consistency,
      authorize: authorization(of: asked, auth)
    ) { reader in
      var progress = QueryProgress(
        run: QueryRun(prepared, at: reader.past?.sequence),
        sequence: reader.snapshot.sequence
      )
      try self.add(older: try reader.overlay(prepared.keyRange), to: &progress)
      try self.readOn(&progress, reader.snapshot)
      return LongQuery(progress)
    }
    var transaction = first.newTransaction
    if case .transaction(let id) = consistency { transaction = id }
    do {
      try await handOut(first, of: query.database, in: transaction, counting: count, body)
    } catch {
      if let id = first.newTransaction { abandon(id) }
      throw error
    }
  }

  private func handOut(
    _ first: Consistent<LongQuery>,
    of database: DatabaseName,
    in transaction: TransactionID?,
    counting count: (_ heldBytes: Int) throws -> Void,
    _ body: (QueryPage) async throws -> Void
  ) async throws {
    let query = first.answer
    let sequence = query.progress.withLock { $0.sequence }
    let pin = longReads.begin(sequence)
    defer { longReads.end(pin) }
    var isFirst = true
    // Only a few queries may collect large results in memory at a time.
    var hasPermit = false
    defer { if hasPermit { largeQueries.leave() } }
    while true {
      while query.progress.withLock({ !$0.isPageFull }) {
        if !hasPermit, query.progress.withLock({ $0.run.sortedBytes }) > Self.largeQueryBytesMin {
          await largeQueries.enter()
          hasPermit = true
        }
        try await readOn(query, at: first.readTime, in: transaction, database)
        longReads.advance(pin, to: query.progress.withLock { $0.sequence })
        try count(query.progress.withLock(\.heldBytes))
      }
      if hasPermit {
        // From here on, the client determines how long the page takes.
        largeQueries.leave()
        hasPermit = false
      }
      let (page, statistics, keptBytes) = query.progress.withLock { progress in
        let page = progress.page
        progress.page = page.following
        return (page, progress.run.statistics, progress.keptBytes)
      }
      let isLast = page.next == nil
      try await body(
        QueryPage(
          documents: page.documents,
          skipped: isFirst ? statistics.skipped : 0,
          scanned: statistics.scanned,
          readTime: first.readTime,
          newTransaction: isFirst ? first.newTransaction : nil,
          sequence: sequence,
          isLast: isLast,
          heldBytes: page.heldBytes + keptBytes,
          keptBytes: keptBytes
        )
      )
      if isLast { return }
      isFirst = false
    }
  }

  /// The bytes collected for sorting above which a query counts as large and may have to wait.
  private static let largeQueryBytesMin = 8 << 20
  /// The maximum number of concurrent large queries; each may use the full memory limit of sorting.
  static let largeQueriesMax = 2

  /// A query in progress; only one task at a time continues it.
  ///
  /// A class, so that the collected results are not copied from part to part.
  private final class LongQuery: Sendable {
    let progress: Mutex<QueryProgress>

    init(_ progress: consuming QueryProgress) {
      self.progress = Mutex(progress)
    }
  }

  /// A query's run with the results collected for the next page.
  private struct QueryProgress: Sendable {
    var run: QueryRun
    /// The sequence number of the commit up to which the run has received changes.
    var sequence: UInt64
    var page = FoundPage()
    /// The stored size of the older versions that the run holds.
    var olderBytes = 0

    /// True if the page can be returned, because it is full or the last one.
    var isPageFull: Bool { page.next != nil || run.isEnded }

    /// The memory of the page and of what later pages need, in bytes.
    var heldBytes: Int { page.heldBytes + keptBytes }
    /// The memory of sorted results and of earlier versions of documents, in bytes.
    var keptBytes: Int { run.sortedBytes + olderBytes }
  }

  /// A page that is being filled.
  private struct FoundPage: Sendable {
    private(set) var documents: [FirestoreDocument] = []
    private(set) var bytes = 0
    /// The first document of the next page; its presence shows that there is one.
    private(set) var next: FirestoreDocument?

    /// Adds a document; returns false if it belongs to the next page.
    mutating func take(_ document: FirestoreDocument, documentsMax: Int, bytesMax: Int) -> Bool {
      guard documents.count < documentsMax, bytes < bytesMax else {
        next = document
        return false
      }
      documents.append(document)
      bytes += StorageSize.document(document.name, document.fields)
      return true
    }

    /// The memory of the documents, in bytes.
    var heldBytes: Int { bytes * QueryPage.memoryPerStoredByte }

    /// The page after this one, with its first document.
    var following: FoundPage {
      var page = FoundPage()
      if let next { _ = page.take(next, documentsMax: 1, bytesMax: 1) }
      return page
    }
  }

  /// Reads the next part of a query from a new snapshot.
  private func readOn(
    _ query: LongQuery,
    at time: Timestamp,
    in transaction: TransactionID?,
    _ database: DatabaseName
  ) async throws {
    try Task.checkCancellation()
    if let transaction {
      let start = elapsed()
      _ = try transactions.withLock { table throws(StatusError) in
        try table.beginCall(transaction, in: database, at: start)
      }
    }
    defer {
      if let transaction {
        let end = elapsed()
        transactions.withLock { $0.endCall(transaction, at: end) }
      }
    }
    try await withTaskExecutorPreference(LongWorkExecutor.shared) {
      // Moves this task to the end of the executor's queue.
      await Task.yield()
      // Many parts may have been in the queue before this one.
      try Task.checkCancellation()
      try await storage.read { snapshot in
        try query.progress.withLock { progress in
          let changes = try self.changes(
            in: progress.run.query,
            after: progress.sequence,
            at: time,
            snapshot
          )
          try self.add(older: changes, to: &progress)
          progress.sequence = snapshot.sequence
          try self.readOn(&progress, snapshot)
        }
      }
    }
  }

  /// Adds older versions to a run, which holds them until its end; throws if they become too many.
  private func add(
    older documents: [DocumentName: FirestoreDocument?],
    to progress: inout QueryProgress
  ) throws {
    for document in progress.run.add(older: documents) {
      progress.olderBytes += StorageSize.document(document.name, document.fields)
    }
    guard progress.olderBytes <= configuration.overlayBytesMax else {
      throw StatusError(
        .resourceExhausted,
        "Too much was changed while the query's results were read; read them faster."
      )
    }
  }

  private func readOn(_ progress: inout QueryProgress, _ snapshot: any StorageSnapshot) throws {
    var budget = CandidateBudget(
      candidates: configuration.queryCandidatesMax,
      bytes: configuration.queryPageBytesMax
    )
    var page = FoundPage()
    swap(&page, &progress.page)
    defer { progress.page = page }
    try queryRunner.goOn(with: &progress.run, on: snapshot, &budget) { document in
      page.take(
        document,
        documentsMax: configuration.queryPageDocumentsMax,
        bytesMax: configuration.queryPageBytesMax
      )
    }
  }

  /// Returns the documents in a query's scope that changed after a commit, as they were then.
  func changes(
    in query: PreparedQuery,
    after sequence: UInt64,
    at time: Timestamp,
    _ snapshot: any StorageSnapshot
  ) throws -> [DocumentName: FirestoreDocument?] {
    guard snapshot.sequence > sequence else { return [:] }
    let database = query.query.database
    if let start = try StoredClock.pastStart(of: database, snapshot), time < start.time {
      throw Self.tooOld
    }
    if let trimmed = try CommitLog.trimmedThrough(in: snapshot), sequence < trimmed.sequence {
      throw Self.tooOld
    }
    return try changes(after: sequence, at: time, in: snapshot, where: query.covers)
  }

  /// Returns the documents that changed after a commit according to the log, as they were then.
  ///
  /// If `time` is before the commit's, the documents must not have been changed in between, but may
  /// have been created.
  func changes(
    after sequence: UInt64,
    at time: Timestamp,
    in snapshot: any StorageSnapshot,
    where isWanted: (DocumentName) -> Bool
  ) throws -> [DocumentName: FirestoreDocument?] {
    var changes: [DocumentName: FirestoreDocument?] = [:]
    var last = sequence
    while true {
      let records = try CommitLog.records(after: last, limit: Self.recordsPage, in: snapshot)
      guard let end = records.last?.sequence else { return changes }
      for record in records {
        for change in record.changes
        where isWanted(change.name) && changes.index(forKey: change.name) == nil {
          let isNewer = change.before?.wasCreated(after: time, before: record.commitTime) ?? false
          changes.updateValue(isNewer ? nil : change.before, forKey: change.name)
        }
      }
      last = end
    }
  }

  /// The maximum number of log records in memory at a time.
  private static let recordsPage = 500
}

extension QueryRange {
  /// Creates the range that a query's result depends on.
  init(_ query: PreparedQuery) {
    self.init(
      database: query.query.database,
      parent: query.query.parent,
      collectionID: query.query.collectionID,
      allDescendants: query.query.allDescendants,
      matches: query.matches
    )
  }
}
