import DocumentModel
import QueryEngine
import StorageEngine

/// Finding collections, and names of missing documents that have documents below them.
extension DocumentDatabase {
  /// The number of IDs read at a time if each has to be checked against the past.
  private static let checkedIDsPage = 100

  /// Returns the IDs of collections below a document or the root that have documents at any depth.
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

    // Some collections of today may be newer than the read time; others have disappeared since.
    // They are kept as paths, which compare by their bytes.
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

  /// Returns the names of missing documents in a collection that have descendants, in order.
  ///
  /// Excludes `after` itself and all names after `last`, so that the work is limited to the page
  /// that the caller has found.
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
    // Parents whose last descendant has been deleted since are only in the past versions.
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

  /// Returns true if a document existed below a path at the overlay's time.
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
      // Documents that the overlay changes have been checked above.
      let name = try DocumentKeys.decodeName(value.bytes)
      found = isBelow(name) && overlay[name] == nil && reader.existed(value)
      return !found
    }
    return found
  }
}
