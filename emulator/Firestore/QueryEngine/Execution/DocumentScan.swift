import DocumentModel
import StorageEngine

/// A scan of stored documents without an index.
struct DocumentScan {
  let snapshot: any StorageSnapshot
  let database: DatabaseName

  /// Calls `body` for the documents of one collection in the order of their names.
  func collection(
    _ range: KeyRange,
    descending: Bool,
    _ body: (_ key: [UInt8], _ value: StoredValue) throws -> Bool
  ) throws {
    guard !range.isEmpty else { return }
    try snapshot.scan(
      DocumentKeys.keyspace,
      from: range.from,
      to: range.to,
      descending: descending,
      body
    )
  }

  /// Calls `body` for a range's documents in collections named `collectionID`, in key order.
  ///
  /// Nil includes every collection. Other collections are skipped with one seek each. After each
  /// skip, `passing` is called; if it returns false, the scan stops and returns the key to continue
  /// from.
  func group(
    _ collectionID: String?,
    in range: KeyRange,
    passing: () -> Bool,
    _ body: (_ key: [UInt8], _ value: StoredValue) throws -> Bool
  ) throws -> [UInt8]? {
    let databaseCount = DocumentKeys.databasePrefix(database).count
    let wanted = collectionID.map(Self.encode)
    var from: [UInt8]? = range.from
    var isFirst = true
    while let start = from {
      guard isFirst || passing() else { return start }
      isFirst = false
      from = nil
      try snapshot.scan(
        DocumentKeys.keyspace,
        from: start,
        to: range.to,
        descending: false
      ) { key, value in
        guard let wanted else { return try body(key, value) }
        guard let parts = DocumentKeys.parts(of: key, after: databaseCount) else { return true }
        if key[parts.collectionID].elementsEqual(wanted) { return try body(key, value) }
        from = keyAfter(prefix: Array(key[..<parts.documentsStart]))
        return false
      }
    }
    return nil
  }

  /// Calls `body` for a range's keys in collections named `collectionID`, like `group`.
  func groupKeys(
    _ collectionID: String,
    in range: KeyRange,
    passing: () -> Bool,
    _ body: (_ key: [UInt8], _ version: UInt64) throws -> Bool
  ) throws -> [UInt8]? {
    let databaseCount = DocumentKeys.databasePrefix(database).count
    let wanted = Self.encode(collectionID)
    var from: [UInt8]? = range.from
    var isFirst = true
    while let start = from {
      guard isFirst || passing() else { return start }
      isFirst = false
      from = nil
      // The prefix shared by the keys of all documents of a wanted collection.
      var known: [UInt8] = []
      try snapshot.scanKeys(
        DocumentKeys.keyspace,
        from: start,
        to: range.to,
        descending: false
      ) { key, version in
        if !known.isEmpty, key.starts(with: known) { return try body(key, version) }
        guard let parts = DocumentKeys.parts(of: key, after: databaseCount) else { return true }
        if key[parts.collectionID].elementsEqual(wanted) {
          known = Array(key[..<parts.documentsStart])
          return try body(key, version)
        }
        from = keyAfter(prefix: Array(key[..<parts.documentsStart]))
        return false
      }
    }
    return nil
  }

  /// Calls `body` with the IDs of the collections directly below a document that follow `after`.
  ///
  /// Makes one seek per collection; the IDs are in order. A collection is included if it contains a
  /// document at any depth.
  func collectionIDs(
    below parent: ResourcePath,
    after: String?,
    _ body: (String) throws -> Bool
  ) throws {
    let prefix = DocumentKeys.descendantsPrefix(database, parent)
    let end = keyAfter(prefix: prefix)
    func following(_ id: String) -> [UInt8]? {
      keyAfter(prefix: prefix + Self.encode(id))
    }
    var from = after.map(following) ?? prefix
    while let start = from {
      from = nil
      var found: String?
      try snapshot.scan(
        DocumentKeys.keyspace,
        from: start,
        to: end,
        descending: false
      ) { _, value in
        let segments = try DocumentKeys.decodeName(value.bytes).path.segments
        found = segments.dropFirst(parent.segments.count).first
        return false
      }
      guard let id = found, try body(id) else { return }
      from = following(id)
    }
  }

  private static func encode(_ id: String) -> [UInt8] {
    var encoder = KeyEncoder()
    encoder.append(id: id)
    return encoder.bytes
  }
}
