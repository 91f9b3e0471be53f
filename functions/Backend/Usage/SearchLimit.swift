import FirestoreClient

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The limit of searches per user, counted across all workers.
///
/// The times of a user's searches in the last minute are stored in `usage/{uid}`, which only the
/// server reads and writes.
public struct SearchLimit: Sendable {
  private let firestore: Firestore
  private let searchesPerMinute: Int
  private let now: @Sendable () -> Date

  private static let minute: Int64 = 60_000_000

  init(firestore: Firestore, limits: UsageLimits, now: @escaping @Sendable () -> Date) {
    self.firestore = firestore
    searchesPerMinute = limits.searchesPerMinute
    self.now = now
  }

  private struct Searches: Codable {
    var searches: [Timestamp]
  }

  /// Counts a search of a user.
  ///
  /// Throws `SearchLimitError`, without counting the search, if the user has reached the limit in
  /// the last minute. Throws `FirestoreError` if the count cannot be read or written.
  public func count(_ uid: String) async throws {
    let reference = firestore.collection(UsageLedger.collection).document(uid)
    try await firestore.runTransaction { transaction in
      let time = Timestamp(microseconds: Int64(now().timeIntervalSince1970 * 1_000_000))
      let snapshot = try await transaction.get(reference)
      // A document that is missing or has another format counts as no searches.
      let stored = (try? snapshot.data(as: Searches.self))?.searches ?? []
      // Another worker's clock may be ahead, but times more than a minute away do not count.
      let recent = stored.filter { abs($0.microseconds - time.microseconds) < Self.minute }
      guard recent.count < searchesPerMinute else {
        let next = recent.sorted()[recent.count - searchesPerMinute].microseconds + Self.minute
        throw SearchLimitError(retryAfter: .microseconds(next - time.microseconds))
      }
      try transaction.set(reference, Searches(searches: recent + [time]))
    }
  }
}

/// The error thrown if a user has made too many searches in the last minute.
public struct SearchLimitError: Error, Sendable, Hashable {
  /// The delay until the next search is allowed.
  public var retryAfter: Duration
}

extension BackendServices {
  /// The limit of searches and other requests per user.
  public var searchLimit: SearchLimit {
    SearchLimit(firestore: firestore, limits: settings.limits, now: retries.now)
  }
}
