import DequeModule
import DocumentModel

/// The end of a query's pipeline, which takes matching documents in final order.
///
/// It applies the older versions, offset, limit and projection, and keeps what nobody has taken yet.
struct ResultEmitter: Sendable {
  private let query: PreparedQuery
  private var older: ArraySlice<FirestoreDocument> = []
  private var ready: Deque<FirestoreDocument> = []
  /// The last document in final order, whether passed over or kept, with the fields that order it at
  /// least.
  private(set) var last: FirestoreDocument?
  private(set) var skipped = 0
  private(set) var returned = 0
  /// Whether nothing more is wanted from the source.
  private(set) var isDone: Bool

  /// An emitter that has taken nothing.
  init(_ query: PreparedQuery) {
    self.query = query
    isDone = query.query.limit == 0 && query.query.offset == 0
  }

  /// How many documents the source needs to deliver at most; nil for all.
  var wanted: Int? {
    guard let limit = query.query.limit else { return nil }
    let (sum, overflow) = limit.addingReportingOverflow(query.query.offset)
    return overflow ? nil : sum
  }

  /// How many of the source's next documents are passed over, whatever is in them.
  var toSkip: Int { older.isEmpty && !isDone ? max(0, query.query.offset - skipped) : 0 }

  /// Passes over documents of the source, at most `toSkip`, of which `last` is the last one.
  mutating func skip(_ count: Int, last: FirestoreDocument) {
    skipped += count
    self.last = last
    endIfFull()
  }

  /// How many results wait to be taken.
  var readyCount: Int { ready.count }

  /// The next result, projected.
  mutating func next() -> FirestoreDocument? { ready.popFirst() }

  /// Adds documents as they were at the query's time, which the source no longer delivers.
  ///
  /// What the source has delivered already is not delivered again.
  mutating func add(older documents: some Sequence<FirestoreDocument>) {
    let new = documents.filter { document in
      query.matches(document) && (last.map { query.compare($0, document) == .less } ?? true)
    }
    guard !new.isEmpty else { return }
    older = (older + new).sorted { query.compare($0, $1) == .less }[...]
  }

  /// Takes the next document of the source.
  mutating func take(_ document: FoundDocument) throws {
    while let first = older.first, !isDone {
      let order = query.compare(first, document.tested)
      if order == .greater { break }
      older.removeFirst()
      // The source read the document before it was changed.
      if order == .less { try emit(FoundDocument(first)) }
    }
    if !isDone { try emit(document) }
  }

  /// Ends the source and passes on the older versions that are left.
  mutating func finish() throws {
    while !isDone, let first = older.popFirst() { try emit(FoundDocument(first)) }
    isDone = true
  }

  private mutating func emit(_ document: FoundDocument) throws {
    last = document.tested
    if skipped < query.query.offset {
      skipped += 1
    } else {
      returned += 1
      ready.append(try document.result(of: query))
    }
    endIfFull()
  }

  /// What an offset passes over is counted even where the limit lets nothing through.
  private mutating func endIfFull() {
    if returned == query.query.limit, skipped >= query.query.offset { isDone = true }
  }
}
