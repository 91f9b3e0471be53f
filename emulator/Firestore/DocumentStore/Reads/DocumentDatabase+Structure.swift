import DocumentModel
import QueryEngine
import StorageEngine

/// Finding collections and names that exist without being documents themselves.
extension DocumentDatabase {
  /// The ids read from the query runner at a time when some must be checked against the past.
  private static let checkedIDsPage = 100

  /// The ids of the collections below a document or the root that hold any document at any depth.
  func collectionIDs(
    _ database: DatabaseName,
    _ parent: ResourcePath,
    after: String?,
    limit: Int,
    _ reader: SnapshotReader
  ) throws -> [String] {
    let below = KeyRange(prefix: DocumentKeys.descendantsPrefix(database, parent))
    let overlay = try reader.overlay(below)
    func ids(after: String?, limit: Int) throws -> [String] {
      try queryRunner.listCollectionIDs(
        database,
        parent: parent,
        after: after,
        limit: limit,
        on: reader.snapshot
      )
    }
    if reader.past == nil { return try ids(after: after, limit: limit) }

    // Some of today's collections may be newer than the time; others have gone since.
    // As paths, which are told apart by their bytes.
    let gone = Set(
      overlay.values.compactMap { document in
        document.map { ResourcePath([$0.name.path.segments[parent.segments.count]]) }
      }
    )
    var result: [String] = []
    var last = after
    while result.count < limit {
      let page = try ids(after: last, limit: Self.checkedIDsPage)
      let end = page.count < Self.checkedIDsPage ? nil : page.last
      let candidates = gone.filter { path in
        (last.map { Self.precedes($0, path.segments[0]) } ?? true)
          && (end.map { !Self.precedes($0, path.segments[0]) } ?? true)
      }.union(page.map { ResourcePath([$0]) })
      for id in candidates.map(\.segments[0]).sorted(by: Self.precedes)
      where try isAnyDocument(in: database, atOrBelow: parent.appending(id), overlay, reader) {
        result.append(id)
      }
      guard end != nil else { break }
      last = end
    }
    return Array(result.prefix(limit))
  }

  /// The names in a collection without a document but with documents below them, in order.
  ///
  /// `after` itself and whatever comes after `last` are left out, so that the work is bounded by
  /// the page that the caller has found.
  func missingParents(
    _ database: DatabaseName,
    _ collection: ResourcePath,
    after: DocumentName?,
    upTo last: DocumentName?,
    limit: Int,
    _ reader: SnapshotReader
  ) throws -> [DocumentName] {
    let all = KeyRange(prefix: DocumentKeys.descendantsPrefix(database, collection))
    let overlay = try reader.overlay(all)
    var result: [DocumentName] = []
    func consider(_ name: DocumentName) throws {
      let hasDescendants =
        try reader.past == nil
        || isAnyDocument(in: database, atOrBelow: name.path, overlay, reader)
      if hasDescendants, try reader.document(name) == nil { result.append(name) }
    }
    // The keys of everything below a collection's documents follow those of the documents.
    let start = DocumentKeys.collectionPrefix(database, collection)
    var position = after.map { DocumentKeys.descendantsPrefix(database, $0.path) } ?? start
    var considered: Set<DocumentName> = []
    while result.count < limit, let from = keyAfter(prefix: position),
      let name = try firstName(from: from, to: all.to, reader),
      name.path.isBelowOrEqual(to: collection)
    {
      let segments = name.path.segments.prefix(collection.segments.count + 1)
      let parent = DocumentName(database: database, path: ResourcePath(Array(segments)))
      if let last, last < parent { break }
      considered.insert(parent)
      try consider(parent)
      position = DocumentKeys.descendantsPrefix(database, parent.path)
    }
    // Only the past knows of parents whose last descendant has gone since.
    let depth = collection.segments.count + 1
    for case .some(let document) in overlay.values where document.name.path.segments.count > depth {
      let segments = document.name.path.segments.prefix(depth)
      let parent = DocumentName(database: database, path: ResourcePath(Array(segments)))
      guard considered.insert(parent).inserted, after.map({ $0 < parent }) ?? true,
        last.map({ !($0 < parent) }) ?? true
      else { continue }
      try consider(parent)
    }
    return Array(result.sorted().prefix(limit))
  }

  private static func precedes(_ left: String, _ right: String) -> Bool {
    ValueOrder.compareIDs(left, right) == .less
  }

  private func firstName(
    from: [UInt8],
    to: [UInt8]?,
    _ reader: SnapshotReader
  ) throws -> DocumentName? {
    var name: DocumentName?
    try reader.snapshot.scan(
      DocumentKeys.keyspace,
      from: from,
      to: to,
      descending: false
    ) { _, value in
      name = try DocumentKeys.decodeName(value.bytes)
      return false
    }
    return name
  }

  /// Whether a document existed, at the overlay's time, in a collection or below a document.
  private func isAnyDocument(
    in database: DatabaseName,
    atOrBelow path: ResourcePath,
    _ overlay: [DocumentName: FirestoreDocument?],
    _ reader: SnapshotReader
  ) throws -> Bool {
    func isBelow(_ name: DocumentName) -> Bool {
      name.path.segments.count > path.segments.count && name.path.isBelowOrEqual(to: path)
    }
    for case .some(let document) in overlay.values where isBelow(document.name) { return true }
    var found = false
    let range = KeyRange(prefix: DocumentKeys.descendantsPrefix(database, path))
    try reader.snapshot.scan(
      DocumentKeys.keyspace,
      from: range.from,
      to: range.to,
      descending: false
    ) { _, value in
      // Documents that the overlay changes have been looked at above.
      let name = try DocumentKeys.decodeName(value.bytes)
      found = isBelow(name) && overlay[name] == nil && reader.existed(value)
      return !found
    }
    return found
  }
}
