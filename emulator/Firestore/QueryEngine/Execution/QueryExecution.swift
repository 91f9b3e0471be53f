import DocumentModel
import HeapModule
import StorageEngine

/// The execution of one query plan: it fetches candidates and orders the matches.
///
/// It reads a bounded part at a time, each from the snapshot it is given, and keeps its position in
/// between. Documents changed since the query's read time are supplied through the emitter.
struct QueryExecution: Sendable {
  /// The source of the candidates, with the position up to which they have been read.
  private enum Source {
    /// The documents of one collection in the order of their names.
    case names([KeyRange], descending: Bool)
    /// Documents that have to be sorted.
    case scan([KeyRange])
    /// Index ranges that are all in order; a document in several of them appears once.
    ///
    /// A stream is in the query's order only among the documents of its own disjunct.
    case merge([IndexStream])
    /// Index ranges whose documents have to be sorted, starting with the current one.
    case gather([IndexGathering])
    /// The sorted documents.
    case sorted(ArraySlice<FoundDocument>)
    case ended
  }

  let query: PreparedQuery
  let plan: QueryPlan
  private var source: Source
  /// The documents to sort; not part of the source, because advancing it copies its parts.
  private var top: TopResults
  /// The keys found so far by several index ranges.
  private var seen: Set<[UInt8]> = []
  private(set) var emitter: ResultEmitter
  /// The number of documents and index entries read, matching or not, and of collections skipped.
  private(set) var scanned = 0
  /// The number of index entries in `scanned` that were skipped without reading their documents.
  private(set) var passedEntries = 0

  init(_ query: PreparedQuery, _ plan: QueryPlan, sortBytesMax: Int) {
    self.query = query
    self.plan = plan
    emitter = ResultEmitter(query)
    top = TopResults(query, count: emitter.wanted, bytesMax: sortBytesMax)
    switch plan {
    case .scan:
      let ranges = ScanRanges.ranges(of: query)
      if query.collection != nil, let descending = query.nameOrderDescending {
        source = .names(descending ? ranges.reversed() : ranges, descending: descending)
      } else {
        source = .scan(ranges)
      }
    case .indexes(let ranges):
      source =
        plan.isOrdered
        ? .merge(ranges.map { IndexStream(query, $0) })
        : .gather(ranges.map { IndexGathering(query, $0) })
    }
  }

  /// True if the emitter has received every result.
  var isEnded: Bool {
    if case .ended = source { true } else { false }
  }

  /// True if the source may still be read, so that later changes of documents affect it.
  var isReading: Bool {
    switch source {
    case .sorted, .ended: false
    case .names, .scan, .merge, .gather: true
    }
  }

  /// The stored size of the documents being sorted, until all of them have been taken.
  var sortedBytes: Int { isEnded && emitter.readyCount == 0 ? 0 : top.bytes }

  /// Returns the next result that is ready.
  mutating func next() -> FirestoreDocument? { emitter.next() }

  /// Adds documents as they were at the query's read time.
  mutating func add(older documents: some Sequence<FirestoreDocument>) {
    emitter.add(older: documents)
  }

  /// Reads until results are ready, the budget is spent or nothing is left.
  ///
  /// `changed` contains the documents that were changed since the query's read time. With
  /// `sequence`, documents that were created after that commit may be missing from it.
  mutating func readOn(
    _ snapshot: any StorageSnapshot,
    _ budget: inout CandidateBudget,
    changed: [DocumentName: FirestoreDocument?],
    at sequence: UInt64?
  ) throws {
    guard !emitter.isDone else { return source = .ended }
    var candidates = Candidates(
      snapshot: snapshot,
      changed: changed,
      sequence: sequence,
      budget: budget
    )
    defer {
      budget = candidates.budget
      scanned += candidates.scanned
      passedEntries += candidates.passedEntries
    }
    source = try advanced(&candidates)
    if isEnded { try emitter.finish() }
    if emitter.isDone { source = .ended }
  }

  private mutating func advanced(_ candidates: inout Candidates) throws -> Source {
    switch source {
    case .names(var ranges, let descending):
      try scanNames(&ranges, descending, &candidates)
      return ranges.isEmpty ? .ended : .names(ranges, descending: descending)
    case .scan(var ranges):
      try scan(&ranges, &candidates)
      return ranges.isEmpty ? .sorted(top.sorted()[...]) : .scan(ranges)
    case .merge(var streams):
      return try merge(&streams, &candidates) ? .ended : .merge(streams)
    case .gather(var ranges):
      try gather(&ranges, &candidates)
      return ranges.isEmpty ? .sorted(top.sorted()[...]) : .gather(ranges)
    case .sorted(var documents):
      while goesOn(candidates), let document = documents.popFirst() {
        try emitter.take(document)
      }
      return documents.isEmpty ? .ended : .sorted(documents)
    case .ended: return .ended
    }
  }

  // MARK: Scans

  private mutating func scanNames(
    _ ranges: inout [KeyRange],
    _ descending: Bool,
    _ candidates: inout Candidates
  ) throws {
    let scan = DocumentScan(snapshot: candidates.snapshot, database: query.query.database)
    while goesOn(candidates) {
      if query.takesAll, emitter.toSkip > 0 { try skipNames(&ranges, descending, &candidates) }
      guard let range = ranges.first, goesOn(candidates) else { return }
      var position: [UInt8]?
      try scan.collection(range, descending: descending) { key, value in
        if let document = try candidates.accept(value, matching: query, isCovered: true) {
          try emitter.take(document)
        }
        guard goesOn(candidates) else {
          position = key
          return false
        }
        return true
      }
      if let position {
        ranges[0].pass(position, descending: descending)
      } else {
        ranges.removeFirst()
      }
    }
  }

  /// Skips documents by reading only their keys.
  private mutating func skipNames(
    _ ranges: inout [KeyRange],
    _ descending: Bool,
    _ candidates: inout Candidates
  ) throws {
    var skipped = 0
    var last: [UInt8]?
    let toSkip = emitter.toSkip
    while let range = ranges.first, skipped < toSkip, !candidates.budget.isSpent {
      var position: [UInt8]?
      try candidates.snapshot.scanKeys(
        DocumentKeys.keyspace,
        from: range.from,
        to: range.to,
        descending: descending
      ) { key, version in
        if candidates.accept(key, version) {
          skipped += 1
          last = key
        }
        guard skipped < toSkip, !candidates.budget.isSpent else {
          position = key
          return false
        }
        return true
      }
      if let position {
        ranges[0].pass(position, descending: descending)
      } else {
        ranges.removeFirst()
      }
    }
    if let last { try skip(skipped, last: last, candidates) }
  }

  private mutating func skip(
    _ count: Int,
    last key: [UInt8],
    _ candidates: Candidates
  ) throws {
    if let stored = try candidates.snapshot.get(DocumentKeys.keyspace, key) {
      emitter.skip(count, last: try DocumentKeys.decode(stored.bytes))
    }
  }

  private func goesOn(_ candidates: Candidates) -> Bool {
    !emitter.isDone && emitter.readyCount < Self.readyMax && !candidates.budget.isSpent
  }

  private mutating func scan(
    _ ranges: inout [KeyRange],
    _ candidates: inout Candidates
  ) throws {
    let scan = DocumentScan(snapshot: candidates.snapshot, database: query.query.database)
    while let range = ranges.first, !candidates.budget.isSpent {
      var position: [UInt8]?
      func take(_ key: [UInt8], _ value: StoredValue) throws -> Bool {
        let isCovered = query.collection != nil
        if let document = try candidates.accept(value, matching: query, isCovered: isCovered) {
          try top.insert(
            document,
            size: query.sizeHeld(of: document.tested, stored: value.bytes.count)
          )
        }
        guard candidates.budget.isSpent else { return true }
        position = key + [0]
        return false
      }
      if query.collection != nil {
        try scan.collection(range, descending: false, take)
      } else {
        let next = try scan.group(
          query.query.collectionID,
          in: range,
          passing: {
            candidates.pass()
            return !candidates.budget.isSpent
          },
          take
        )
        position = position ?? next
      }
      if let position { ranges[0].startAtLeast(position) } else { ranges.removeFirst() }
    }
  }

  // MARK: Indexes

  /// Takes documents from the streams in order; returns true at the end of all streams.
  private mutating func merge(
    _ streams: inout [IndexStream],
    _ candidates: inout Candidates
  ) throws -> Bool {
    if streams.count == 1, emitter.toSkip > 0, candidates.sequence == nil {
      let (skipped, last) = try streams[0].skip(emitter.toSkip, &candidates)
      if let last { try skip(skipped, last: last, candidates) }
    }
    var heads = Heap<StreamHead>()
    var headless = Array(streams.indices)
    while !emitter.isDone, emitter.readyCount < Self.readyMax {
      for position in headless {
        guard try streams[position].fill(&candidates) else { return false }
        if let document = streams[position].head {
          heads.insert(StreamHead(query: query, document: document, position: position))
        }
      }
      headless = []
      guard let first = heads.min else { return true }
      try emitter.take(first.document)
      // A document found by several streams is one result.
      while let head = heads.min, head == first {
        heads.removeMin()
        streams[head.position].pass()
        headless.append(head.position)
      }
    }
    return false
  }

  /// Reads all ranges, in any order.
  private mutating func gather(
    _ ranges: inout [IndexGathering],
    _ candidates: inout Candidates
  ) throws {
    let areMany = query.disjuncts.count > 1
    while !ranges.isEmpty, !candidates.budget.isSpent {
      let key: [UInt8]
      switch try ranges[0].next(&candidates) {
      case .isSpent: return
      case .isAtEnd:
        ranges.removeFirst()
        continue
      case .found(let found): key = found
      }
      guard !areMany || seen.insert(key).inserted else {
        candidates.pass()
        continue
      }
      if let (document, size) = try candidates.fetch(key, matching: query) {
        try top.insert(document, size: query.sizeHeld(of: document.tested, stored: size))
      }
    }
  }

  /// The maximum number of ready results; a source in order stops there.
  private static let readyMax = 64
}

/// The next document of one of several streams, comparable in the query's order.
private struct StreamHead: Comparable {
  let query: PreparedQuery
  let document: FoundDocument
  let position: Int

  static func == (left: Self, right: Self) -> Bool {
    left.query.compare(left.document.tested, right.document.tested) == .equal
  }

  static func < (left: Self, right: Self) -> Bool {
    left.query.compare(left.document.tested, right.document.tested) == .less
  }
}

/// The keys of the documents in an index range, in the index's order.
struct IndexGathering: Sendable {
  private let definition: IndexDefinition
  private let prefix: [UInt8]
  private var join: IndexJoin

  init(_ query: PreparedQuery, _ range: IndexRange) {
    definition = range.index.definition
    prefix = IndexStream.documentPrefix(query, definition)
    join = IndexJoin(range)
  }

  /// Returns the key of the next entry's document.
  mutating func next(_ candidates: inout Candidates) throws -> IndexJoin.Step<[UInt8]> {
    switch try join.next(&candidates) {
    case .found(let entry): .found(entry.documentKey(definition, prefix: prefix))
    case .isAtEnd: .isAtEnd
    case .isSpent: .isSpent
    }
  }
}

/// A fetcher that reads and checks candidates within one part of a query.
struct Candidates {
  let snapshot: any StorageSnapshot
  /// The documents changed since the query's read time; their older versions are used instead.
  let changed: [DocumentName: FirestoreDocument?]
  /// The keys of `changed`, computed on first use.
  private lazy var changedKeys = Set(changed.keys.map(DocumentKeys.key))
  /// The last commit visible at the read time; rows of later commits are skipped.
  let sequence: UInt64?
  private(set) var budget: CandidateBudget
  private(set) var scanned = 0
  private(set) var passedEntries = 0

  init(
    snapshot: any StorageSnapshot,
    changed: [DocumentName: FirestoreDocument?],
    sequence: UInt64?,
    budget: CandidateBudget
  ) {
    self.snapshot = snapshot
    self.changed = changed
    self.sequence = sequence
    self.budget = budget
  }

  /// Returns the document of a key if it matches, for a given disjunct if there is one.
  mutating func fetch(
    _ key: [UInt8],
    matching query: PreparedQuery,
    only disjunct: Conjunction? = nil
  ) throws -> (document: FoundDocument, size: Int)? {
    guard let stored = try snapshot.get(DocumentKeys.keyspace, key) else {
      pass()
      return nil
    }
    return try accept(stored, matching: query, only: disjunct).map {
      ($0, stored.bytes.count)
    }
  }

  /// Returns the document of a row if it matches and has not been changed since.
  mutating func accept(
    _ stored: StoredValue,
    matching query: PreparedQuery,
    only disjunct: Conjunction? = nil,
    isCovered: Bool = false
  ) throws -> FoundDocument? {
    scanned += 1
    budget.spend(bytes: stored.bytes.count)
    if let sequence, stored.version > sequence { return nil }
    let found = try FoundDocument(stored.bytes, for: query)
    let document = found.tested
    guard changed.isEmpty || changed.index(forKey: document.name) == nil else { return nil }
    return query.matches(document, only: disjunct, isCovered: isCovered) ? found : nil
  }

  /// Returns true if the document of a key counts, for a query without further tests.
  mutating func accept(_ key: [UInt8], _ version: UInt64? = nil) -> Bool {
    scanned += 1
    budget.spendKey()
    if let sequence, let version, version > sequence { return false }
    return changed.isEmpty || !changedKeys.contains(key)
  }

  /// Counts index entries whose documents are not among the results.
  mutating func pass(entries: Int) {
    scanned += entries
    passedEntries += entries
    budget.spendKeys(entries)
  }

  /// Counts an examined item that is not a document.
  mutating func pass() {
    scanned += 1
    budget.spend()
  }
}
