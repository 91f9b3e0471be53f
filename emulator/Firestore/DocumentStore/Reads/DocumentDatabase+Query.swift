package import DocumentModel
package import Identity
import QueryEngine
import RuntimeSupport

/// The answer to a query.
package struct QueryResult: Sendable {
  package var documents: [FirestoreDocument]
  /// Results passed over because of the query's offset.
  package var skipped: Int
  /// The time as of which the whole result holds.
  package var readTime: Timestamp
  /// The transaction that the query began, if it was told to.
  package var newTransaction: TransactionID?
}

/// One page of a query's results.
package struct QueryPage: Sendable {
  /// In order, projected; empty only in the single page of a query without results.
  package var documents: [FirestoreDocument]
  /// Results passed over because of the query's offset; in the first page only.
  package var skipped: Int
  /// The same for all pages outside of pessimistic transactions.
  package var readTime: Timestamp
  /// In the first page, the transaction that the query began, if it was told to.
  package var newTransaction: TransactionID?
  /// Whether this is the last page.
  package var isLast: Bool
}

extension DocumentDatabase {
  /// Runs a query and collects its results, whose size is limited.
  package func query(
    _ query: Query,
    at consistency: ReadConsistency,
    auth: AuthContext
  ) async throws -> QueryResult {
    var documents: [FirestoreDocument] = []
    var bytes = 0
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
      documents += page.documents
      if first == nil { first = page }
    }
    guard let first else { throw StatusError(.internal, "A query has at least one page.") }
    return QueryResult(
      documents: documents,
      skipped: first.skipped,
      readTime: first.readTime,
      newTransaction: first.newTransaction
    )
  }

  /// Runs a query page by page, so that neither memory nor a storage snapshot is held for long.
  ///
  /// All pages show the same moment. There is at least one page; the next one is read when `body`
  /// returns. When `body` throws, a transaction that the query began is rolled back unless it has
  /// been handed over.
  package func query(
    _ query: Query,
    at consistency: ReadConsistency,
    auth: AuthContext,
    _ body: (QueryPage) async throws -> Void
  ) async throws {
    try NameValidation.check(parent: query.parent, in: query.database)
    var unprojected = query
    unprojected.projection = nil
    let projecting = try queryRunner.prepare(query)
    let prepared = try queryRunner.prepare(unprojected)
    let reads = ReadSet(ranges: [QueryRange(prepared)])
    var rest = prepared
    var consistency = consistency
    var returned = 0
    while true {
      let isFirst = returned == 0
      let current = rest
      let result = try await read(reads, query.database, at: consistency) { reader in
        if isFirst, auth != .admin {
          try self.accessPolicy.authorizeQuery(query, auth: auth, view: self.accessView(reader))
        }
        return try self.page(current, reader)
      }
      let page = result.answer
      let isLast = page.documents.isEmpty || !page.isCut
      try await body(
        QueryPage(
          documents: page.documents.map(projecting.project),
          skipped: isFirst ? page.skipped : 0,
          readTime: result.readTime,
          newTransaction: isFirst ? result.newTransaction : nil,
          isLast: isLast
        )
      )
      guard !isLast, let last = page.documents.last else { return }
      returned += page.documents.count
      rest = prepared.continuing(after: last, returned: returned)
      switch consistency {
      case .latest: consistency = .readTime(result.readTime)
      case .newTransaction:
        guard let id = result.newTransaction else { return }
        consistency = .transaction(id)
      case .transaction, .readTime: break
      }
    }
  }

  private struct Page: Sendable {
    var documents: [FirestoreDocument] = []
    var skipped = 0
    /// Whether there are, or may be, more documents.
    var isCut = false
  }

  private func page(_ query: PreparedQuery, _ reader: SnapshotReader) throws -> Page {
    var page = Page()
    var bytes = 0
    let statistics = try queryRunner.run(
      query,
      on: reader.snapshot,
      overlay: try reader.overlay(query.keyRange)
    ) { document in
      guard page.documents.count < configuration.queryPageDocumentsMax,
        bytes < configuration.queryPageBytesMax
      else {
        page.isCut = true
        return false
      }
      bytes += StorageSize.document(document.name, document.fields)
      page.documents.append(document)
      return true
    }
    page.skipped = statistics.skipped
    return page
  }
}

extension QueryRange {
  /// What a query's answer depends on.
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
