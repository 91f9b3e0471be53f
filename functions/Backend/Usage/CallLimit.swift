import FirestoreClient

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The limit of calls per user, counted across all workers and separately for each kind.
///
/// The times of a user's calls in the last minute are stored in `usage/{uid}`, a list for each
/// kind, which only the server reads and writes.
public struct CallLimit: Sendable {
  private let firestore: Firestore
  private let callsPerMinute: Int
  private let now: @Sendable () -> Date

  private static let minute: Int64 = 60_000_000

  init(firestore: Firestore, limits: UsageLimits, now: @escaping @Sendable () -> Date) {
    self.firestore = firestore
    callsPerMinute = limits.searchesPerMinute
    self.now = now
  }

  /// The kinds of calls, of which none uses up the calls of another.
  public enum Kind: String, Sendable, CaseIterable {
    case searches, assistant, quickActions, chats
  }

  /// Counts a call of a user.
  ///
  /// Throws `CallLimitError`, without counting the call, if the user has reached the limit in the
  /// last minute. Throws `FirestoreError` if the count cannot be read or written.
  public func count(_ kind: Kind, of uid: String) async throws {
    let reference = firestore.collection(UsageLedger.collection).document(uid)
    try await firestore.runTransaction { transaction in
      let time = Timestamp(microseconds: Int64(now().timeIntervalSince1970 * 1_000_000))
      let snapshot = try await transaction.get(reference)
      // A document that is missing or has another format counts as no calls.
      var calls = (try? snapshot.data(as: [String: [Timestamp]].self)) ?? [:]
      let stored = calls[kind.rawValue] ?? []
      // Another worker's clock may be ahead, but times more than a minute away do not count.
      let recent = stored.filter { abs($0.microseconds - time.microseconds) < Self.minute }
      guard recent.count < callsPerMinute else {
        let next = recent.sorted()[recent.count - callsPerMinute].microseconds + Self.minute
        throw CallLimitError(retryAfter: .microseconds(next - time.microseconds))
      }
      calls[kind.rawValue] = recent + [time]
      try transaction.set(reference, calls)
    }
  }
}

/// The error thrown if a user has made too many calls of a kind in the last minute.
public struct CallLimitError: Error, Sendable, Hashable {
  /// The delay until the next call is allowed.
  public var retryAfter: Duration
}

extension BackendServices {
  /// The limit of calls per user, for each kind of calls.
  public var callLimit: CallLimit {
    CallLimit(firestore: firestore, limits: settings.limits, now: retries.now)
  }
}
