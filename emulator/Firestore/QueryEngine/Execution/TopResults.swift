import DocumentModel
import StatusCodes

/// A collector that takes documents in any order and keeps the first ones in final order.
///
/// With a limit it holds at most about twice that many documents; without one, as many as fit into
/// the memory limit. Beyond the memory limit it throws `RESOURCE_EXHAUSTED`.
struct TopResults {
  private let query: PreparedQuery
  private let count: Int?
  private let bytesMax: Int
  private var kept: [Entry] = []
  /// The stored size of the kept documents.
  private(set) var bytes = 0
  /// The last document of a full set; only documents before it are wanted.
  private var worst: FoundDocument?

  private struct Entry {
    var document: FoundDocument
    var bytes: Int
  }

  /// Creates a collector of the first `count` documents; nil collects all.
  init(_ query: PreparedQuery, count: Int?, bytesMax: Int) {
    self.query = query
    self.count = count
    self.bytesMax = bytesMax
  }

  /// Adds a document whose stored form has `size` bytes.
  mutating func insert(_ document: FoundDocument, size: Int) throws {
    if let worst, query.compare(document.tested, worst.tested) != .less { return }
    kept.append(Entry(document: document, bytes: size))
    bytes += size
    if let count, kept.count >= count.addingReportingOverflow(max(count, 64)).partialValue,
      count < .max / 2
    {
      trim(to: count)
    }
    guard bytes > bytesMax else { return }
    if let count { trim(to: count) }
    guard bytes <= bytesMax else {
      throw StatusError(
        .resourceExhausted,
        "Sorting the results needs more than \(bytesMax) bytes; add a limit, or wait until an "
          + "index for the query is built."
      )
    }
  }

  /// Returns the documents in final order.
  mutating func sorted() -> [FoundDocument] {
    trim(to: count ?? .max)
    return kept.map(\.document)
  }

  private mutating func trim(to count: Int) {
    kept.sort { query.compare($0.document.tested, $1.document.tested) == .less }
    guard kept.count > count else { return }
    kept.removeLast(kept.count - count)
    bytes = kept.reduce(0) { $0 + $1.bytes }
    worst = kept.last?.document
  }
}
