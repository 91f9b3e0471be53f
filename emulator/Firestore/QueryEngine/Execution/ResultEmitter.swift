import DequeModule
import DocumentModel

/// The last stage of a query's pipeline; it takes matching documents in final order.
///
/// It applies older versions, offset, limit and projection, and buffers results until they are
/// taken.
struct ResultEmitter: Sendable {
  private let query: PreparedQuery
  private var older: ArraySlice<FirestoreDocument> = []
  private var ready: Deque<FirestoreDocument> = []
  /// The last document in final order, skipped or returned, with at least the fields that order it.
  private(set) var last: FirestoreDocument?
  private(set) var skipped = 0
  private(set) var returned = 0
  /// True if the source need not deliver more documents.
  private(set) var isDone: Bool

  init(_ query: PreparedQuery) {
    self.query = query
    isDone = query.query.limit == 0 && query.query.offset == 0
  }

  /// The maximum number of documents the source needs to deliver; nil for all.
  var wanted: Int? {
    guard let limit = query.query.limit else { return nil }
    let (sum, overflow) = limit.addingReportingOverflow(query.query.offset)
    return overflow ? nil : sum
  }

  /// The number of the source's next documents that are skipped regardless of their content.
  var toSkip: Int { older.isEmpty && !isDone ? max(0, query.query.offset - skipped) : 0 }

  /// Skips documents of the source, at most `toSkip`; `last` is the last of them.
  mutating func skip(_ count: Int, last: FirestoreDocument) {
    skipped += count
    self.last = last
    endIfFull()
  }

  /// The number of results waiting to be taken.
  var readyCount: Int { ready.count }

  /// Returns the next result, projected.
  mutating func next() -> FirestoreDocument? { ready.popFirst() }

  /// Adds documents as they were at the query's read time; the source no longer delivers them.
  ///
  /// Documents that the source has delivered already are not delivered again.
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
      // If they are equal, the source read the document before it was changed.
      if order == .less { try emit(FoundDocument(first)) }
    }
    if !isDone { try emit(document) }
  }

  /// Ends the source and emits the remaining older versions.
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

  /// Skipped documents are counted even if the limit is zero.
  private mutating func endIfFull() {
    if returned == query.query.limit, skipped >= query.query.offset { isDone = true }
  }
}
