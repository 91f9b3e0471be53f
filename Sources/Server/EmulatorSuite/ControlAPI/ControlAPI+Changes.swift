import DocumentModel
import EventLog
import Events
import HTTPMessages
import HTTPSupport
import StorageEngine

/// The documents that were changed since a commit: `GET /hearth/v1/changes`.
struct ChangesDescription: Codable, Sendable, Hashable {
  /// The sequence to pass as `after` in the next request.
  var sequence: UInt64
  /// True if there are more changes after `sequence`.
  var hasMore = false
  /// False if some changes are missing, so that everything shown may be outdated.
  var isComplete: Bool
  /// The changes, in the order of the commits.
  var changes: [Change]

  struct Change: Codable, Sendable, Hashable {
    /// The document's path below the root of its database.
    var path: String
    /// The kind of the change: `created`, `updated` or `deleted`.
    var kind: String
  }
}

extension ControlAPI {
  /// Handles `GET /hearth/v1/changes?after=SEQUENCE&database=(default)`.
  ///
  /// Responds at once with the next changes after a commit; ask again from the returned sequence.
  /// Without `after`, it returns only the sequence of the last commit.
  func changes(_ query: QueryParameters) async throws -> Response {
    let database = DatabaseName(project: project, database: query["database"] ?? "(default)")
    guard let after = try query.number("after", in: 0...UInt64.max) else {
      return try .json(
        encoding: ChangesDescription(sequence: storage.sequence, isComplete: true, changes: [])
      )
    }
    let description = try await storage.read { snapshot in
      let trimmed = try CommitLog.trimmedThrough(in: snapshot)?.sequence ?? 0
      // A sequence of the future belongs to a suite that has since lost its data.
      guard after >= trimmed, after <= snapshot.sequence,
        snapshot.sequence - after <= Self.changesLagMax
      else {
        return ChangesDescription(sequence: snapshot.sequence, isComplete: false, changes: [])
      }
      let records = try CommitLog.entries(after: after, limit: Self.changesPageMax, in: snapshot)
        .map(\.record)
      let last = records.last?.sequence ?? after
      let isEnd = try CommitLog.entries(after: last, limit: 1, in: snapshot).isEmpty
      let own = records.filter { $0.database == database }
      return ChangesDescription(
        sequence: isEnd ? snapshot.sequence : last,
        hasMore: !isEnd,
        isComplete: own.allSatisfy { $0.purpose != .discontinuity },
        changes: own.flatMap(\.changes).map {
          .init(path: $0.name.path.description, kind: $0.kind.rawValue)
        }
      )
    }
    return try .json(encoding: description)
  }

  /// The maximum number of commits that a response covers.
  private static let changesPageMax = 256
  /// The maximum number of commits that a client may be behind and still learn of each change.
  private static let changesLagMax: UInt64 = 10_000
}
