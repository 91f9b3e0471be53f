import DocumentModel
import StorageEngine

/// Pulls the entries of an index range in chunks that grow.
///
/// A short result thus reads little, and a long one seeks seldom.
struct IndexCursor {
  private let keyRange: KeyRange
  private let reversed: Bool
  private var buffer: ArraySlice<IndexEntry> = []
  private var chunk = 16
  private var isAtEnd: Bool
  private var last: [UInt8]?

  private static let chunkMax = 512

  /// A cursor before the first entry of a range.
  init(_ range: IndexRange) {
    keyRange = range.range
    reversed = range.reversed
    isAtEnd = range.range.isEmpty
  }

  /// The next entry, or nil at the end.
  mutating func next(on snapshot: any StorageSnapshot) throws -> IndexEntry? {
    if buffer.isEmpty, !isAtEnd { try fill(snapshot) }
    return buffer.popFirst()
  }

  private mutating func fill(_ snapshot: any StorageSnapshot) throws {
    var range = keyRange
    if let last {
      if reversed { range.endAtMost(last) } else { range.startAtLeast(last + [0]) }
    }
    var found: [IndexEntry] = []
    try snapshot.scan(
      IndexEntry.keyspace,
      from: range.from,
      to: range.to,
      descending: reversed
    ) { key, value in
      found.append(try IndexEntry(key: key, value: value.bytes))
      return found.count < chunk
    }
    isAtEnd = found.count < chunk
    last = found.last?.key ?? last
    buffer = found[...]
    chunk = min(chunk * 2, Self.chunkMax)
  }
}

/// The matching documents of an ordered index range, in the query's order.
struct IndexStream {
  private let query: PreparedQuery
  let range: IndexRange
  private let prefix: [UInt8]
  private var cursor: IndexCursor
  private var peeked: IndexEntry?
  private var run: ArraySlice<FirestoreDocument> = []
  private(set) var head: FirestoreDocument?

  /// A stream before its first document.
  init(_ query: PreparedQuery, _ range: IndexRange) {
    self.query = query
    self.range = range
    cursor = IndexCursor(range)
    prefix = IndexStream.documentPrefix(query, range.index.definition)
  }

  /// What the keys of the range's documents start with, as `IndexEntry.documentKey` needs it.
  static func documentPrefix(
    _ query: PreparedQuery,
    _ definition: IndexDefinition
  ) -> [UInt8] {
    guard definition.scope == .collection, let collection = query.collection else {
      return DocumentKeys.databasePrefix(query.query.database)
    }
    return DocumentKeys.collectionPrefix(query.query.database, collection)
  }

  /// Moves `head` to the next document, nil at the end.
  ///
  /// `accept` fetches and checks an entry's document.
  mutating func advance(
    on snapshot: any StorageSnapshot,
    _ accept: (_ documentKey: [UInt8]) throws -> FirestoreDocument?
  ) throws {
    head = try next(on: snapshot, accept)
  }

  private mutating func next(
    on snapshot: any StorageSnapshot,
    _ accept: (_ documentKey: [UInt8]) throws -> FirestoreDocument?
  ) throws -> FirestoreDocument? {
    if let first = run.popFirst() { return first }
    while let entry = try peeked.take() ?? cursor.next(on: snapshot) {
      if let cut = entry.cutEnds.first(where: { $0 > range.boundEnd }) {
        run = try tiedRun(entry, upTo: cut, on: snapshot, accept)
        if let first = run.popFirst() { return first }
      } else if let document = try accept(documentKey(entry)) {
        return document
      }
    }
    return nil
  }

  /// The documents of entries that tie in a cut component, sorted by their whole values.
  private mutating func tiedRun(
    _ first: IndexEntry,
    upTo cut: Int,
    on snapshot: any StorageSnapshot,
    _ accept: (_ documentKey: [UInt8]) throws -> FirestoreDocument?
  ) throws -> ArraySlice<FirestoreDocument> {
    let tied = first.key[..<cut]
    var documents = [try accept(documentKey(first))].compactMap(\.self)
    while let entry = try cursor.next(on: snapshot) {
      guard entry.key.starts(with: tied) else {
        peeked = entry
        break
      }
      if let document = try accept(documentKey(entry)) { documents.append(document) }
    }
    documents.sort { query.compare($0, $1) == .less }
    return documents[...]
  }

  private func documentKey(_ entry: IndexEntry) -> [UInt8] {
    entry.documentKey(range.index.definition, prefix: prefix)
  }
}
