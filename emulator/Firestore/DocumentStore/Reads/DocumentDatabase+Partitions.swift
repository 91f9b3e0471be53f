package import DocumentModel
package import Identity
import QueryEngine
import RuntimeSupport

extension DocumentDatabase {
  /// Finds documents that split a collection group into parts of about the same size, in order.
  ///
  /// There are at most `count` of them and at most 10 000, and fewer when the group has fewer
  /// documents. All pages of an answer show the moment of its first page. Reads all names of the group
  /// for each page. Throws
  /// `INVALID_ARGUMENT` for a query that is more than a group in the order of its names, and for a
  /// token of other parameters.
  package func partition(
    _ query: Query,
    count: Int,
    pageSize: Int,
    pageToken: String?,
    readTime: Timestamp?,
    auth: AuthContext
  ) async throws -> (points: [DocumentName], nextPageToken: String?) {
    guard count > 0 else {
      throw StatusError.invalidArgument("Partition count must be greater than zero.")
    }
    guard pageSize >= 0 else {
      throw StatusError.invalidArgument("Page size must be nonnegative.")
    }
    try checkPartitioned(query)
    try authorize(.partition, in: query.database, auth)
    let list =
      "partitions \(query.database) \(query.parent) \(query.collectionID ?? "") \(count)"
    var first = 0
    var time = readTime
    if let token = try PageToken.decode(pageToken, for: list),
      case (.integer(let index), .timestamp(let moment)) = (token.position[0], token.position.last)
    {
      (first, time) = (Int(clamping: index), moment)
    }
    var names = query
    names.projection = [.documentID]
    var points = PartitionPoints(count: count)
    var moment = time
    try await self.query(
      names,
      asking: query,
      at: time.map { .readTime($0) } ?? .latest,
      auth: auth
    ) { page in
      for document in page.documents { points.add(document.name) }
      moment = page.readTime
    }
    let rest = points.chosen.dropFirst(max(0, first))
    let page = Array(rest.prefix(pageSize > 0 ? pageSize : .max))
    guard page.count < rest.count, let moment else { return (page, nil) }
    let token = PageToken(position: [.integer(Int64(first + page.count)), .timestamp(moment)])
    return (page, token.encoded(for: list))
  }

  private func checkPartitioned(_ query: Query) throws {
    let refusals: [(isTrue: Bool, words: String)] = [
      (!query.parent.segments.isEmpty, "Ancestor queries are not supported."),
      (!query.allDescendants, "Query must select all descendant collections."),
      (query.limit != nil, "Query limit is not supported."),
      (query.offset != 0, "Query offset is not supported."),
      (query.start != nil, "Query start cursors are not supported."),
      (query.end != nil, "Query end cursors are not supported."),
      (query.projection != nil, "Property masks are not supported."),
      (query.findNearest != nil, "FindNearest is not supported."),
    ]
    if let refusal = refusals.first(where: \.isTrue) {
      throw StatusError.invalidArgument(refusal.words)
    }
    _ = try queryRunner.prepare(query)
    guard query.filter == nil else {
      throw StatusError.invalidArgument("Query filters are not supported.")
    }
    guard query.collectionID != nil,
      query.orders.allSatisfy({ $0.path.isDocumentID && !$0.descending })
    else {
      throw StatusError.invalidArgument(
        "Only a collection group can be partitioned, in the ascending order of __name__."
      )
    }
  }
}

/// Chooses names at even distances out of a row of unknown length, without keeping it.
private struct PartitionPoints {
  /// Points that are found at most; fewer than were asked for are as good.
  private static let countMax = 10_000

  private let count: Int
  /// Every `stride`-th name, from the first on.
  private var kept: [DocumentName] = []
  private var stride = 1
  private var seen = 0

  init(count: Int) { self.count = min(count, Self.countMax) }

  mutating func add(_ name: DocumentName) {
    defer { seen += 1 }
    guard seen.isMultiple(of: stride) else { return }
    kept.append(name)
    // So many that points chosen among them are off by a part in sixteen at most.
    guard kept.count > 16 * (count + 1) else { return }
    kept = kept.enumerated().compactMap { $0.offset.isMultiple(of: 2) ? $0.element : nil }
    stride *= 2
  }

  /// The points between the parts; none before the first name.
  var chosen: [DocumentName] {
    let parts = min(count + 1, kept.count)
    guard parts > 1 else { return [] }
    return (1..<parts).map { kept[$0 * kept.count / parts] }
  }
}
