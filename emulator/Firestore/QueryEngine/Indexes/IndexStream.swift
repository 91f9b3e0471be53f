import DocumentModel
import StorageEngine

/// Pulls the entries of an index range in chunks that grow.
///
/// A short result thus reads little, and a long one seeks seldom.
struct IndexCursor: Sendable {
  private let reversed: Bool
  private var buffer: ArraySlice<IndexEntry> = []
  private var chunk = Self.chunkMin
  /// How many entries were read last.
  private var filled = 0
  private var isAtEnd: Bool
  /// What is left to be read after the buffer.
  private var left: KeyRange

  private static let chunkMin = 16
  private static let chunkMax = 512

  /// A cursor before the first entry of a range.
  init(_ range: IndexRange) {
    left = range.range
    reversed = range.reversed
    isAtEnd = range.range.isEmpty
  }

  /// The next entry, or nil at the end.
  mutating func next(on snapshot: any StorageSnapshot) throws -> IndexEntry? {
    _ = try peek(on: snapshot)
    return buffer.popFirst()
  }

  /// The next entry, which stays the next one, or nil at the end.
  mutating func peek(on snapshot: any StorageSnapshot) throws -> IndexEntry? {
    if buffer.isEmpty, !isAtEnd { try fill(snapshot) }
    return buffer.first
  }

  /// Goes past the entries before a key in the direction of reading; returns how many were read.
  mutating func seek(_ key: [UInt8]) -> Int {
    // The key is most often among the first entries, so the steps towards it grow.
    var (low, step) = (buffer.startIndex, 1)
    while low < buffer.endIndex, isBefore(buffer[low].key, key) {
      let next = low + step
      if next < buffer.endIndex, isBefore(buffer[next].key, key) {
        (low, step) = (next + 1, step * 2)
      } else {
        (low, step) = (low + 1, 1)
      }
    }
    let passed = low - buffer.startIndex
    buffer = buffer[low...]
    guard buffer.isEmpty, !isAtEnd else { return passed }
    if reversed { left.endAtMost(key + [0]) } else { left.startAtLeast(key) }
    isAtEnd = left.isEmpty
    // Where most of what was read is passed over, less is read at a time.
    if passed > filled / 2 { chunk = Self.chunkMin }
    return passed
  }

  private func isBefore(_ own: [UInt8], _ key: [UInt8]) -> Bool {
    ValueOrder.compareBytes(own, key) == (reversed ? .greater : .less)
  }

  private mutating func fill(_ snapshot: any StorageSnapshot) throws {
    let range = left
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
    if let last = found.last?.key { left.pass(last, descending: reversed) }
    buffer = found[...]
    filled = found.count
    chunk = min(chunk * 2, Self.chunkMax)
  }
}

/// The matching documents of an ordered index range, in the query's order.
struct IndexStream: Sendable {
  private let query: PreparedQuery
  private let range: IndexRange
  private let prefix: [UInt8]
  private var join: IndexJoin
  private var peeked: IndexEntry?
  /// What entries that tie in a cut component share, while they are being collected.
  private var tied: [UInt8]?
  private var ties: [FoundDocument] = []
  private var run: ArraySlice<FoundDocument> = []
  private var isAtEnd = false
  /// The next document; nil at the end, and until `fill` has found it.
  private(set) var head: FoundDocument?

  /// A stream before its first document.
  init(_ query: PreparedQuery, _ range: IndexRange) {
    self.query = query
    self.range = range
    join = IndexJoin(range)
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

  /// Goes past `head`.
  mutating func pass() { head = nil }

  /// Passes over documents by the index's entries alone, as far as these tell that they match.
  ///
  /// Returns how many, at most `count`, and the last one's key.
  mutating func skip(
    _ count: Int,
    _ candidates: inout Candidates
  ) throws -> (skipped: Int, last: [UInt8]?) {
    var skipped = 0
    var last: [UInt8]?
    guard head == nil, run.isEmpty, ties.isEmpty, tellsMatches else { return (0, nil) }
    while skipped < count, !candidates.budget.isSpent {
      guard case .found(let entry) = try next(&candidates) else { break }
      guard entry.cutEnds.isEmpty else {
        peeked = entry
        break
      }
      let key = entry.documentKey(range.index.definition, prefix: prefix)
      guard candidates.accept(key) else { continue }
      skipped += 1
      last = key
    }
    return (skipped, last)
  }

  private mutating func next(
    _ candidates: inout Candidates
  ) throws -> IndexJoin.Step<IndexEntry> {
    if let entry = peeked.take() { return .found(entry) }
    return try join.next(&candidates)
  }

  /// Whether an entry without cut values tells that its document is among the results.
  private var tellsMatches: Bool {
    range.isExact && range.isOrdered && query.query.start == nil && query.query.end == nil
      && (range.index.definition.scope == .collection || query.query.parent.segments.isEmpty)
  }

  /// Finds `head` if it is not known; false when the budget was spent before.
  mutating func fill(_ candidates: inout Candidates) throws -> Bool {
    guard head == nil, !isAtEnd else { return true }
    while true {
      head = run.popFirst()
      if head != nil { return true }
      guard !candidates.budget.isSpent else { return false }
      let step = try next(&candidates)
      if case .isSpent = step { return false }
      let entry = step.found
      if let tied, entry?.key.starts(with: tied) != true {
        // Entries that tie are sorted by the whole values of their documents.
        run = ties.sorted { query.compare($0.tested, $1.tested) == .less }[...]
        (self.tied, ties, peeked) = (nil, [], entry)
        isAtEnd = entry == nil && run.isEmpty
      } else if let entry {
        let document = try candidates.fetch(
          entry.documentKey(range.index.definition, prefix: prefix),
          matching: query,
          only: range.disjunct
        )?.document
        if let cut = entry.cutEnds.first(where: { $0 > range.boundEnd }) {
          if tied == nil { tied = Array(entry.key[..<cut]) }
          if let document { ties.append(document) }
        } else if let document {
          head = document
          return true
        }
      } else {
        isAtEnd = true
      }
      if isAtEnd { return true }
    }
  }
}
