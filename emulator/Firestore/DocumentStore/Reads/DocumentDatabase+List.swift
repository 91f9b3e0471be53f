package import DocumentModel
package import Identity
import QueryEngine
import StatusCodes
import StorageEngine

package struct ListedDocument: Sendable, Hashable {
  package var name: DocumentName
  /// The document; nil for a missing document that has documents below it.
  package var document: FirestoreDocument?

  fileprivate func masked(by mask: [FieldPath]?) -> ListedDocument {
    ListedDocument(name: name, document: document?.masked(by: mask))
  }
}

extension DocumentDatabase {
  /// Lists the documents of one collection, or of all collections, below a document or the root.
  ///
  /// Without orders they are sorted by name. `showMissing` also lists the names of missing
  /// documents that have documents below them. The token is nil or empty for the first page; it is
  /// valid only with the same parameters. Each page is read at `consistency` on its own.
  package func listDocuments(
    parent: ResourcePath,
    collectionID: String?,
    database: DatabaseName,
    pageSize: Int,
    pageToken: String?,
    orders: [Query.Order],
    mask: [FieldPath]?,
    showMissing: Bool,
    at consistency: ReadConsistency,
    auth: AuthContext
  ) async throws -> (documents: [ListedDocument], nextPageToken: String?) {
    try NameValidation.check(parent: parent, in: database)
    try Self.check(mask: mask)
    if let collectionID { try NameValidation.check(collectionID: collectionID) }
    if showMissing, collectionID == nil {
      throw StatusError.invalidArgument("collection id must be set when show_missing is true")
    }
    if showMissing, !orders.isEmpty {
      throw StatusError.invalidArgument("cannot specify an order when show_missing is true")
    }
    if collectionID == nil, orders.contains(where: { !$0.path.isDocumentID || $0.descending }) {
      throw StatusError.invalidArgument("kind is required for all orders except __key__ ascending")
    }
    let list =
      "\(database)|\(parent)|\(collectionID ?? "/")|\(orders)|\(showMissing)|\(mask.map { "\($0)" } ?? "")"
    let token = try PageToken.decode(pageToken, for: list)
    var range = QueryRange(
      database: database,
      parent: parent,
      collectionID: collectionID,
      allDescendants: showMissing
    )
    // A name is listed if any collection below it has a document.
    if showMissing { range.collectionID = nil }
    let listing = Listing(
      database: database,
      parent: parent,
      collectionID: collectionID,
      orders: collectionID == nil ? [] : orders,
      showMissing: showMissing,
      count: pageLimit(pageSize)
    )
    if let collectionID, !showMissing {
      let page = try await self.page(listing, collectionID, after: token, consistency, auth)
      return (page.documents.map { $0.masked(by: mask) }, page.next?.encoded(for: list))
    }
    if showMissing { try authorize(.listMissingDocuments, in: database, auth) }
    let result = try await read(
      ReadSet(ranges: [range]),
      database,
      at: consistency,
      authorize: authorization(of: listing.query(in: collectionID, limit: listing.count), auth)
    ) { reader in
      try self.page(listing, after: token, reader)
    }
    let documents = result.answer.documents.map { $0.masked(by: mask) }
    return (documents, result.answer.next?.encoded(for: list))
  }

  /// Lists the IDs of the collections directly below a document or the root, in order.
  ///
  /// A collection is listed if it contains a document at any depth.
  package func listCollectionIDs(
    parent: ResourcePath,
    database: DatabaseName,
    pageSize: Int,
    pageToken: String?,
    at consistency: ReadConsistency,
    auth: AuthContext
  ) async throws -> (collectionIDs: [String], nextPageToken: String?) {
    try NameValidation.check(parent: parent, in: database)
    try authorize(.listCollections, in: database, auth)
    // Production accepts the token of another parent's list.
    let list = "collections"
    var after: String?
    if let token = try PageToken.decode(pageToken, for: list) {
      if case .string(let id) = token.position[0] { after = id }
    }
    let range = QueryRange(
      database: database,
      parent: parent,
      collectionID: nil,
      allDescendants: true
    )
    let count = pageLimit(pageSize)
    let result = try await read(ReadSet(ranges: [range]), database, at: consistency) { reader in
      try self.collectionIDs(database, parent, after: after, limit: count + 1, reader)
    }
    let ids = Array(result.answer.prefix(count))
    guard result.answer.count > count, let last = ids.last else { return (ids, nil) }
    return (ids, PageToken(position: [.string(last)]).encoded(for: list))
  }

  private func pageLimit(_ pageSize: Int) -> Int {
    pageSize <= 0
      ? configuration.listPageDefault : min(pageSize, configuration.listPageMax)
  }

  /// The parameters of a list.
  private struct Listing: Sendable {
    var database: DatabaseName
    var parent: ResourcePath
    var collectionID: String?
    var orders: [Query.Order]
    var showMissing: Bool
    var count: Int

    func query(in collectionID: String?, limit: Int?) -> Query {
      Query(
        database: database,
        parent: parent,
        collectionID: collectionID,
        allDescendants: collectionID == nil,
        orders: orders,
        limit: limit
      )
    }
  }

  private typealias ListPage = (documents: [ListedDocument], next: PageToken?)

  /// Reads a page of one collection with a query.
  ///
  /// The query runs in parts, because an order may require reading the whole collection.
  private func page(
    _ listing: Listing,
    _ collectionID: String,
    after token: PageToken?,
    _ consistency: ReadConsistency,
    _ auth: AuthContext
  ) async throws -> ListPage {
    // One more document than the page holds shows whether there is a next page.
    var query = listing.query(in: collectionID, limit: listing.count + 1)
    let orders = try queryRunner.prepare(query).orders
    if let token {
      guard orders.count == token.position.count else {
        throw StatusError.invalidArgument("invalid page token")
      }
      query.start = Query.Cursor(token.position, before: false)
    }
    let asked = listing.query(in: collectionID, limit: listing.count)
    var found: [FirestoreDocument] = []
    try await self.query(query, asking: asked, at: consistency, auth: auth) { page in
      found += page.documents
    }
    var page: ListPage = ([], nil)
    page.documents = found.prefix(listing.count).map { ListedDocument(name: $0.name, document: $0) }
    if found.count > listing.count, let last = page.documents.last {
      page.next = PageToken(after: last, orders)
    }
    return page
  }

  private func page(
    _ listing: Listing,
    after token: PageToken?,
    _ reader: SnapshotReader
  ) throws -> ListPage {
    var page: ListPage = ([], nil)
    if let collectionID = listing.collectionID {
      try append(collectionID, listing, after: token, reader, to: &page)
      return page
    }
    var last: String?
    if let token, case .reference(let name) = token.position[0] {
      try append(name.collectionID, listing, after: token, reader, to: &page)
      last = name.collectionID
    }
    while page.next == nil {
      let ids = try collectionIDs(
        listing.database,
        listing.parent,
        after: last,
        limit: Self.collectionsPage,
        reader
      )
      for id in ids where page.next == nil {
        try append(id, listing, after: nil, reader, to: &page)
      }
      if ids.count < Self.collectionsPage { break }
      last = ids.last
    }
    return page
  }

  /// The number of collections looked up at a time by a list that covers all collections.
  private static let collectionsPage = 100

  private func append(
    _ collectionID: String,
    _ listing: Listing,
    after token: PageToken?,
    _ reader: SnapshotReader,
    to page: inout ListPage
  ) throws {
    var query = listing.query(in: collectionID, limit: nil)
    if let token { query.start = Query.Cursor(token.position, before: false) }
    let prepared = try queryRunner.prepare(query)
    guard prepared.orders.count == token?.position.count ?? prepared.orders.count else {
      throw StatusError.invalidArgument("invalid page token")
    }
    // One more document than the page holds shows whether there is a next page.
    let wanted = listing.count - page.documents.count + 1
    var found: [ListedDocument] = []
    _ = try queryRunner.run(
      prepared,
      on: reader.snapshot,
      at: reader.past?.sequence,
      overlay: try reader.overlay(prepared.keyRange)
    ) { document in
      found.append(ListedDocument(name: document.name, document: document))
      return found.count < wanted
    }
    if listing.showMissing {
      let collection = listing.parent.appending(collectionID)
      var position: DocumentName?
      if let token, case .reference(let name) = token.position[0] { position = name }
      let missing = try missingParents(
        listing.database,
        collection,
        after: position,
        upTo: found.count < wanted ? nil : found.last?.name,
        limit: wanted,
        reader
      )
      found += missing.map { ListedDocument(name: $0) }
      found.sort { $0.name < $1.name }
    }
    page.documents += found.prefix(wanted - 1)
    guard found.count >= wanted, let last = page.documents.last else { return }
    page.next = PageToken(after: last, prepared.orders)
  }
}

extension PageToken {
  /// Creates the token of the page after an element.
  fileprivate init(after last: ListedDocument, _ orders: [Query.Order]) {
    self.init(
      position: orders.map { order in
        order.path.isDocumentID
          ? .reference(last.name) : last.document?.fields[order.path] ?? .null
      }
    )
  }
}
