import DocumentModel
import StorageEngine

/// A cursor that reads the entries of an index range in chunks of increasing size.
///
/// A short result reads little, and a long one needs few seeks.
struct IndexCursor: Sendable {
  private let reversed: Bool
  private var buffer: ArraySlice<IndexEntry> = []
  private var chunk = Self.chunkMin
  /// The number of entries read last.
  private var filled = 0
  private var isAtEnd: Bool
  /// The range still to be read after the buffer.
  private var left: KeyRange

  private static let chunkMin = 16
  private static let chunkMax = 512

  init(_ range: IndexRange) {
    left = range.range
    reversed = range.reversed
    isAtEnd = range.range.isEmpty
  }

  /// Returns the next entry and moves past it; nil at the end.
  mutating func next(on snapshot: any StorageSnapshot) throws -> IndexEntry? {
    _ = try peek(on: snapshot)
    return buffer.popFirst()
  }

  /// Returns the next entry without moving past it; nil at the end.
  mutating func peek(on snapshot: any StorageSnapshot) throws -> IndexEntry? {
    if buffer.isEmpty, !isAtEnd { try fill(snapshot) }
    return buffer.first
  }

  /// Skips the entries before a key in the direction of reading; returns how many had been read.
  mutating func seek(_ key: [UInt8]) -> Int {
    // The key is usually among the first entries, so the steps toward it grow.
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
    // If most of what was read is skipped, the next read is smaller.
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
  /// The common prefix of the collected entries, which tie in a truncated component.
  private var tied: [UInt8]?
  private var ties: [FoundDocument] = []
  private var run: ArraySlice<FoundDocument> = []
  private var isAtEnd = false
  /// The next document; nil at the end, and until `fill` has found it.
  private(set) var head: FoundDocument?

  init(_ query: PreparedQuery, _ range: IndexRange) {
    self.query = query
    self.range = range
    join = IndexJoin(range)
    prefix = IndexStream.documentPrefix(query, range.index.definition)
  }

  /// Returns the key prefix of the range's documents for use with `IndexEntry.documentKey`.
  static func documentPrefix(
    _ query: PreparedQuery,
    _ definition: IndexDefinition
  ) -> [UInt8] {
    guard definition.scope == .collection, let collection = query.collection else {
      return DocumentKeys.databasePrefix(query.query.database)
    }
    return DocumentKeys.collectionPrefix(query.query.database, collection)
  }

  /// Discards `head`.
  mutating func pass() { head = nil }

  /// Skips documents by reading only index entries, as long as these show that the documents match.
  ///
  /// Returns how many were skipped, at most `count`, and the last one's key.
  mutating func skip(
    _ count: Int,
    _ candidates: inout Candidates
  ) throws -> (skipped: Int, last: [UInt8]?) {
    var skipped = 0
    var last: [UInt8]?
    guard head == nil, run.isEmpty, ties.isEmpty, provesMatches else { return (0, nil) }
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

  /// True if an entry without truncated values shows that its document is among the results.
  private var provesMatches: Bool {
    range.isExact && range.isOrdered && query.query.start == nil && query.query.end == nil
      && (range.index.definition.scope == .collection || query.query.parent.segments.isEmpty)
  }

  /// Finds `head` if it is not known; returns false if the budget was spent first.
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
        // Entries that tie are sorted by the complete values of their documents.
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
