import DocumentModel

/// The end of a query's pipeline, which takes matching documents in final order.
///
/// It applies the older versions, offset, limit and projection.
struct ResultEmitter {
  private let query: PreparedQuery
  private var older: ArraySlice<FirestoreDocument>
  private(set) var skipped = 0
  private(set) var returned = 0
  private var isStopped = false

  /// An emitter; `overlay` holds documents of any name as of an older time.
  init(_ query: PreparedQuery, overlay: [DocumentName: FirestoreDocument?]) {
    self.query = query
    older =
      overlay.values
      .compactMap { $0.flatMap { query.matches($0) ? $0 : nil } }
      .sorted { query.compare($0, $1) == .less }[...]
    isStopped = query.query.limit == 0
  }

  /// How many documents the source needs to deliver at most; nil for all.
  var wanted: Int? {
    guard let limit = query.query.limit else { return nil }
    let (sum, overflow) = limit.addingReportingOverflow(query.query.offset)
    return overflow ? nil : sum
  }

  /// Whether nothing more is wanted.
  var isDone: Bool { isStopped }

  /// Takes the next document of the source, which is not in the overlay.
  mutating func take(
    _ document: FirestoreDocument,
    _ body: (FirestoreDocument) throws -> Bool
  ) throws {
    while let first = older.first, !isStopped, query.compare(first, document) == .less {
      older.removeFirst()
      try emit(first, body)
    }
    if !isStopped { try emit(document, body) }
  }

  /// Ends the source and passes on the older versions that are left.
  mutating func finish(_ body: (FirestoreDocument) throws -> Bool) throws {
    while !isStopped, let first = older.popFirst() { try emit(first, body) }
  }

  private mutating func emit(
    _ document: FirestoreDocument,
    _ body: (FirestoreDocument) throws -> Bool
  ) throws {
    guard skipped >= query.query.offset else {
      skipped += 1
      return
    }
    returned += 1
    let goesOn = try body(query.project(document))
    if !goesOn || returned == query.query.limit { isStopped = true }
  }
}
