import DocumentModel
import StorageEngine

/// One run of a query: fetches candidates as the plan says and passes the matches on.
struct QueryExecution {
  let query: PreparedQuery
  let snapshot: any StorageSnapshot
  let overlay: [DocumentName: FirestoreDocument?]
  let configuration: QueryRunner.Configuration
  private(set) var statistics = QueryStatistics()

  /// An execution that has not begun.
  init(
    query: PreparedQuery,
    snapshot: any StorageSnapshot,
    overlay: [DocumentName: FirestoreDocument?],
    configuration: QueryRunner.Configuration
  ) {
    self.query = query
    self.snapshot = snapshot
    self.overlay = overlay
    self.configuration = configuration
  }

  /// Runs the plan to the end or until `body` or the limit stops it.
  mutating func run(_ plan: QueryPlan, _ body: (FirestoreDocument) throws -> Bool) throws {
    var emitter = ResultEmitter(query, overlay: overlay)
    if !emitter.isDone {
      switch plan {
      case .scan: try scan(&emitter, body)
      case .indexes(let ranges):
        if plan.isOrdered {
          try merge(ranges, &emitter, body)
        } else {
          try gather(ranges, &emitter, body)
        }
        statistics.indexes = Set(ranges.map(\.index.definition))
          .sorted { $0.description < $1.description }
      }
    }
    statistics.skipped = emitter.skipped
    statistics.returned = emitter.returned
  }

  // MARK: Scans

  private mutating func scan(
    _ emitter: inout ResultEmitter,
    _ body: (FirestoreDocument) throws -> Bool
  ) throws {
    let scan = DocumentScan(snapshot: snapshot, database: query.query.database)
    let ranges = ScanRanges.ranges(of: query)
    if query.collection != nil, let descending = query.nameOrderDescending {
      for range in descending ? ranges.reversed() : ranges where !emitter.isDone {
        try scan.collection(range, descending: descending) { _, value in
          if let document = try accept(value.bytes) { try emitter.take(document, body) }
          return !emitter.isDone
        }
      }
      return try emitter.finish(body)
    }
    var top = TopResults(query, count: emitter.wanted, bytesMax: configuration.sortBytesMax)
    for range in ranges {
      try walk(scan, range) { value in
        if let document = try accept(value.bytes) {
          try top.insert(document, size: value.bytes.count)
        }
      }
    }
    try deliver(&top, &emitter, body)
  }

  private func walk(
    _ scan: DocumentScan,
    _ range: KeyRange,
    _ body: (StoredValue) throws -> Void
  ) throws {
    if query.collection != nil {
      try scan.collection(range, descending: false) { _, value in
        try body(value)
        return true
      }
    } else {
      try scan.group(query.query.collectionID, in: range) { _, value in
        try body(value)
        return true
      }
    }
  }

  // MARK: Indexes

  /// Merges streams that are all in order; a document in several of them comes once.
  ///
  /// A stream is in the query's order only among the documents of its own disjunct.
  private mutating func merge(
    _ ranges: [IndexRange],
    _ emitter: inout ResultEmitter,
    _ body: (FirestoreDocument) throws -> Bool
  ) throws {
    var streams = ranges.map { IndexStream(query, $0) }
    for position in streams.indices { try advance(&streams[position]) }
    while !emitter.isDone,
      let first = streams.compactMap(\.head).min(by: { query.compare($0, $1) == .less })
    {
      try emitter.take(first, body)
      guard !emitter.isDone else { return }
      for position in streams.indices {
        if let head = streams[position].head, query.compare(head, first) == .equal {
          try advance(&streams[position])
        }
      }
    }
    try emitter.finish(body)
  }

  private mutating func advance(_ stream: inout IndexStream) throws {
    let disjunct = stream.range.disjunct
    try stream.advance(on: snapshot) { key in try fetch(key, only: disjunct)?.document }
  }

  /// Reads all ranges, in any order, and sorts.
  private mutating func gather(
    _ ranges: [IndexRange],
    _ emitter: inout ResultEmitter,
    _ body: (FirestoreDocument) throws -> Bool
  ) throws {
    var top = TopResults(query, count: emitter.wanted, bytesMax: configuration.sortBytesMax)
    var seen: Set<[UInt8]> = []
    for range in ranges {
      var cursor = IndexCursor(range)
      let prefix = IndexStream.documentPrefix(query, range.index.definition)
      while let entry = try cursor.next(on: snapshot) {
        let key = entry.documentKey(range.index.definition, prefix: prefix)
        guard ranges.count == 1 || seen.insert(key).inserted else { continue }
        if let (document, size) = try fetch(key) { try top.insert(document, size: size) }
      }
    }
    try deliver(&top, &emitter, body)
  }

  // MARK: Documents

  private mutating func fetch(
    _ key: [UInt8],
    only disjunct: Conjunction? = nil
  ) throws -> (document: FirestoreDocument, size: Int)? {
    guard let stored = try snapshot.get(DocumentKeys.keyspace, key) else { return nil }
    return try accept(stored.bytes, only: disjunct).map { ($0, stored.bytes.count) }
  }

  /// The document if it matches, because of `disjunct` when there is one; nil if the overlay
  /// replaces it and delivers it instead.
  private mutating func accept(
    _ bytes: [UInt8],
    only disjunct: Conjunction? = nil
  ) throws -> FirestoreDocument? {
    statistics.scanned += 1
    let document = try DocumentKeys.decode(bytes)
    guard overlay.isEmpty || overlay.index(forKey: document.name) == nil else { return nil }
    return query.matches(document, only: disjunct) ? document : nil
  }

  private func deliver(
    _ top: inout TopResults,
    _ emitter: inout ResultEmitter,
    _ body: (FirestoreDocument) throws -> Bool
  ) throws {
    for document in top.sorted() where !emitter.isDone { try emitter.take(document, body) }
    try emitter.finish(body)
  }
}
