package import DocumentModel
package import Identity
import QueryEngine
import StatusCodes
import StorageEngine
import Synchronization

extension DocumentDatabase {
  /// Finds documents that split a collection group into parts of about the same size, in order.
  ///
  /// Returns at most `count` of them and at most 10,000; fewer if the group has fewer documents.
  /// All pages of a result show the state at the read time of the first page. Each page reads all
  /// keys of the group, but not the documents. Throws `INVALID_ARGUMENT` for a query other than a
  /// whole group in the order of names, and for a token of other parameters.
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

  /// Returns evenly spaced names of a group, at most `keptMax`, and their read time.
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
        // Moves this task to the end of the executor's queue.
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

/// A name sample in progress; only one task at a time continues it.
private final class LongSample: Sendable {
  let progress: Mutex<Progress>

  struct Progress: Sendable {
    var sample: NameSample
    /// The sequence number of the commit up to which the sample includes changes.
    var sequence: UInt64
    /// The names, once everything has been read.
    var names: [DocumentName]?

    mutating func readOn(_ snapshot: any StorageSnapshot, candidatesMax: Int) throws {
      var budget = CandidateBudget(candidates: candidatesMax, bytes: .max)
      try sample.readOn(snapshot, &budget)
      if sample.isEnded { names = try sample.names(in: snapshot) }
    }
  }

  init(_ progress: Progress) { self.progress = Mutex(progress) }
}

/// Evenly spaced points in a sorted list of names.
private struct PartitionPoints {
  /// The maximum number of points; returning fewer than requested is allowed.
  private static let countMax = 10_000

  /// The first name of each part except the first.
  let chosen: [DocumentName]

  init(_ names: [DocumentName], count: Int) {
    let parts = min(Self.count(of: count) + 1, names.count)
    chosen = parts > 1 ? (1..<parts).map { names[$0 * names.count / parts] } : []
  }

  /// Returns the number of points to look for if `count` are requested.
  static func count(of count: Int) -> Int { min(count, countMax) }
}
