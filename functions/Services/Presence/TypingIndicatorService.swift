import AsyncAlgorithms
public import DatabaseClient
public import Foundation
import PsstModels

/// Who types in a chat.
public struct TypingIndicatorService: Sendable {
  private let database: Database
  private let uid: String
  private let now: @Sendable () -> Date

  /// The time after which a status expires that its app has forgotten.
  public static let lifetime: Duration = .seconds(5)

  /// Creates a service for the user with the given uid, as whom `database` acts.
  ///
  /// `now` is the time of this device, which may be wrong: it only tells which statuses were
  /// forgotten before the observation began.
  public init(
    database: Database,
    uid: String,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.database = database
    self.uid = uid
    self.now = now
  }

  /// Tells the members of a chat whether the user types, with the server's time.
  ///
  /// Call it again within `lifetime` while the user goes on typing. Throws `PresenceError`.
  public func setTyping(_ isTyping: Bool, in chatID: String) async throws {
    try await PresenceError.mapping {
      try await chat(chatID).child(uid)
        .set(["isTyping": isTyping, "timestamp": ServerValue.timestamp])
    }
  }

  /// The uids of the others who type in a chat, in order, now and after every change.
  ///
  /// A status is shown for `lifetime` after it has arrived. One that is older when the observation
  /// begins is not shown.
  public func observeTyping(in chatID: String) -> Updates<[String]> {
    let clock = ContinuousClock()
    let ticks = AsyncTimerSequence(interval: Self.interval, clock: clock)
      .map { _ in DatabaseSnapshot?.none }
    let changes = chat(chatID).observe().map { DatabaseSnapshot?.some($0) }
    let (uid, now) = (uid, now)
    return Updates(merge(changes, ticks), errors: PresenceError.self) {
      var statuses = TypingStatuses<ContinuousClock.Instant>(without: uid)
      return { snapshot in
        if let snapshot { statuses.take(snapshot, at: clock.now, date: now()) }
        return statuses.change(at: clock.now)
      }
    }
  }

  private func chat(_ chatID: String) -> DatabaseReference {
    database.reference("typing").child(chatID)
  }

  /// The time between two looks for statuses that have expired.
  private static let interval: Duration = .milliseconds(500)
}

/// The statuses in a chat, and the times of their arrival.
///
/// The times within the statuses are the server's, and this device's clock may be wrong. They tell
/// a new status from one that has been seen, and the age of those that are there at the beginning.
struct TypingStatuses<Instant: InstantProtocol> where Instant.Duration == Duration {
  private let ownID: String
  private var arrivals: [String: (timestamp: Timestamp, time: Instant)] = [:]
  private var shown: [String]?
  private var hasBegun = false

  init(without ownID: String) {
    self.ownID = ownID
  }

  /// Takes the statuses of a chat; what is no status is left out.
  mutating func take(_ snapshot: DatabaseSnapshot, at now: Instant, date: Date) {
    let before = arrivals
    arrivals = [:]
    let oldest = hasBegun ? .distantPast : date - TypingIndicatorService.lifetime / .seconds(1)
    hasBegun = true
    for child in snapshot.children {
      // Anybody may write what is no status.
      guard let uid = child.key, uid != ownID, let status = try? child.data(TypingStatus.self),
        status.isTyping, before[uid] != nil || status.timestamp.date > oldest
      else { continue }
      let known = before[uid]
      arrivals[uid] =
        known?.timestamp == status.timestamp ? known : (status.timestamp, now)
    }
  }

  /// Returns those who type, if they have changed since the last call.
  mutating func change(at now: Instant) -> [String]? {
    let fresh = arrivals.filter {
      $0.value.time.duration(to: now) < TypingIndicatorService.lifetime
    }
    let typing = fresh.keys.sorted()
    guard typing != shown else { return nil }
    shown = typing
    return typing
  }
}
