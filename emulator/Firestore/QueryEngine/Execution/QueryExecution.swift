import DocumentModel
import HeapModule
import StorageEngine

/// One plan of a query on its way, which fetches candidates and orders the matches.
///
/// It reads a bounded part at a time, each from the snapshot that it is given, and keeps its place in
/// between. Documents that were changed since the query's time are left to the emitter.
struct QueryExecution: Sendable {
  /// Where the candidates come from, and how far they have been read.
  private enum Source {
    /// The documents of one collection in the order of their names.
    case names([KeyRange], descending: Bool)
    /// Documents that have to be sorted.
    case scan([KeyRange])
    /// Ranges of indexes that are all in order; a document in several of them comes once.
    ///
    /// A stream is in the query's order only among the documents of its own disjunct.
    case merge([IndexStream])
    /// Ranges of indexes whose documents have to be sorted, the current one first.
    case gather([IndexGathering])
    /// What has been sorted.
    case sorted(ArraySlice<FoundDocument>)
    case ended
  }

  let query: PreparedQuery
  let plan: QueryPlan
  private var source: Source
  /// What has to be sorted; not in the source, whose parts are copied when it advances.
  private var top: TopResults
  /// The documents that several ranges of indexes have given.
  private var seen: Set<[UInt8]> = []
  private(set) var emitter: ResultEmitter
  /// Documents and index entries read, whether they matched or not, and collections passed over.
  private(set) var scanned = 0
  /// Those of the index entries that were passed over without reading their documents.
  private(set) var passedEntries = 0

  /// An execution that has read nothing.
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

  /// Whether every result is in the emitter.
  var isEnded: Bool {
    if case .ended = source { true } else { false }
  }

  /// Whether the source may still be read, so that changes of documents matter to it.
  var isReading: Bool {
    switch source {
    case .sorted, .ended: false
    case .names, .scan, .merge, .gather: true
    }
  }

  /// The stored size of the documents that are sorted or to be sorted, while any of them is left.
  var sortedBytes: Int { isEnded && emitter.readyCount == 0 ? 0 : top.bytes }

  /// The next result that is ready.
  mutating func next() -> FirestoreDocument? { emitter.next() }

  /// Adds documents as they were at the query's time.
  mutating func add(older documents: some Sequence<FirestoreDocument>) {
    emitter.add(older: documents)
  }

  /// Reads on until results are ready, the budget is spent or nothing is left.
  ///
  /// `changed` has the documents that were changed since the query's time; with `sequence`, those
  /// that were created after that commit may be missing there.
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

  /// Passes over documents by their keys alone.
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

  /// Takes documents from the streams in order; true at the end of all.
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
      // A document that several streams find is one result.
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

  /// Results that may wait; a source that makes them in order stops there.
  private static let readyMax = 64
}

/// The next document of one of several streams, in the order of the query.
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

  /// A gathering before its first entry.
  init(_ query: PreparedQuery, _ range: IndexRange) {
    definition = range.index.definition
    prefix = IndexStream.documentPrefix(query, definition)
    join = IndexJoin(range)
  }

  /// The key of the next entry's document.
  mutating func next(_ candidates: inout Candidates) throws -> IndexJoin.Step<[UInt8]> {
    switch try join.next(&candidates) {
    case .found(let entry): .found(entry.documentKey(definition, prefix: prefix))
    case .isAtEnd: .isAtEnd
    case .isSpent: .isSpent
    }
  }
}

/// Fetches and checks candidates within one part of a query.
struct Candidates {
  let snapshot: any StorageSnapshot
  /// The documents that were changed since the query's time, whose older versions count.
  let changed: [DocumentName: FirestoreDocument?]
  /// The keys of `changed`, made when they are needed.
  private lazy var changedKeys = Set(changed.keys.map(DocumentKeys.key))
  /// The commit after which documents were created too late.
  let sequence: UInt64?
  private(set) var budget: CandidateBudget
  private(set) var scanned = 0
  private(set) var passedEntries = 0

  /// Candidates of a snapshot.
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

  /// The document of a key if it matches, because of `disjunct` when there is one.
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

  /// The document of a row if it matches and has not been changed.
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

  /// Whether the document of a key, of which nothing else matters, counts.
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

  /// Counts what was looked at without being a document.
  mutating func pass() {
    scanned += 1
    budget.spend()
  }
}
