package import DocumentModel
package import Identity
import QueryEngine
import RuntimeSupport
import StorageEngine
import Synchronization

extension DocumentDatabase {
  /// Finds documents that split a collection group into parts of about the same size, in order.
  ///
  /// There are at most `count` of them and at most 10 000, and fewer when the group has fewer
  /// documents. All pages of an answer show the moment of its first page. Reads all keys of the group
  /// for each page, without the documents. Throws
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
    let (names, moment) = try await sample(
      query,
      keptMax: 16 * (PartitionPoints.count(of: count) + 1),
      at: time.map { .readTime($0) } ?? .latest,
      auth: auth
    )
    let points = PartitionPoints(names, count: count)
    let rest = points.chosen.dropFirst(max(0, first))
    let page = Array(rest.prefix(pageSize > 0 ? pageSize : .max))
    guard page.count < rest.count else { return (page, nil) }
    let token = PageToken(position: [.integer(Int64(first + page.count)), .timestamp(moment)])
    return (page, token.encoded(for: list))
  }

  /// Names of a group at even distances, at most `keptMax`, with the moment they show.
  private func sample(
    _ query: Query,
    keptMax: Int,
    at consistency: ReadConsistency,
    auth: AuthContext
  ) async throws -> (names: [DocumentName], moment: Timestamp) {
    let prepared = try queryRunner.prepare(query)
    let candidatesMax = configuration.queryCandidatesMax
    let first = try await read(
      ReadSet(ranges: [QueryRange(prepared)]),
      query.database,
      at: consistency,
      authorize: authorization(of: query, auth)
    ) { reader in
      var sample = NameSample(prepared, at: reader.past?.sequence, keptMax: keptMax)
      sample.add(older: try reader.overlay(prepared.keyRange))
      var progress = LongSample.Progress(sample: sample, sequence: reader.snapshot.sequence)
      try progress.readOn(reader.snapshot, candidatesMax: candidatesMax)
      return LongSample(progress)
    }
    let long = first.answer
    let pin = longReads.begin(long.progress.withLock { $0.sequence })
    defer { longReads.end(pin) }
    while true {
      if let names = long.progress.withLock({ $0.names }) { return (names, first.readTime) }
      try Task.checkCancellation()
      try await withTaskExecutorPreference(LongWorkExecutor.shared) {
        // To the end of the line.
        await Task.yield()
        try await storage.read { snapshot in
          try long.progress.withLock { progress in
            let changes = try self.changes(
              in: prepared,
              after: progress.sequence,
              at: first.readTime,
              snapshot
            )
            progress.sample.add(older: changes)
            progress.sequence = snapshot.sequence
            try progress.readOn(snapshot, candidatesMax: candidatesMax)
          }
        }
      }
      longReads.advance(pin, to: long.progress.withLock { $0.sequence })
    }
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

/// A sample of names under way, which one task reads at a time.
private final class LongSample: Sendable {
  let progress: Mutex<Progress>

  struct Progress: Sendable {
    var sample: NameSample
    /// The commit up to which the sample includes changes.
    var sequence: UInt64
    /// The names, once everything has been read.
    var names: [DocumentName]?

    /// Reads the next part from a snapshot.
    mutating func readOn(_ snapshot: any StorageSnapshot, candidatesMax: Int) throws {
      var budget = CandidateBudget(candidates: candidatesMax, bytes: .max)
      try sample.readOn(snapshot, &budget)
      if sample.isEnded { names = try sample.names(in: snapshot) }
    }
  }

  init(_ progress: Progress) { self.progress = Mutex(progress) }
}

/// Points at even distances among names in order.
private struct PartitionPoints {
  /// Points that are found at most; fewer than were asked for are as good.
  private static let countMax = 10_000

  /// The points between the parts; none before the first name.
  let chosen: [DocumentName]

  init(_ names: [DocumentName], count: Int) {
    let parts = min(Self.count(of: count) + 1, names.count)
    chosen = parts > 1 ? (1..<parts).map { names[$0 * names.count / parts] } : []
  }

  /// The points that are looked for when `count` are asked for.
  static func count(of count: Int) -> Int { min(count, countMax) }
}
