import FirestoreClient
import Logging

/// A lock for a long operation, held by at most one run, at `leases/{name}`.
///
/// The document names the run that holds the lease. The run renews it every few seconds and deletes
/// it at the end. A lease that has not been renewed for 30 s, by the database's clock, is free. A
/// killed run therefore delays the next run by at most that time.
struct Lease: Sendable {
  /// The id of the run that wants the lease.
  let run: String
  private let reference: DocumentReference
  private let clock: any Clock<Duration>

  private static let collection = "leases"
  /// The time after which a lease without renewal is free.
  private static let lifetime: Duration = .seconds(30)
  /// The time for which a run waits for the lease, longer than the lease of a dead run.
  private static let waitMax: Duration = .seconds(31)
  /// The interval between renewals.
  private static let renewalInterval: Duration = .seconds(4)
  /// The time limit of a renewal, so that the work ends before the lease becomes free.
  private static let renewalTimeMax: Duration = .seconds(20)
  /// The delay before a failed renewal is repeated.
  private static let renewalRetryWait: Duration = .seconds(1)

  /// Creates a lease for a new run, which does not hold it yet.
  init(_ name: String, in firestore: Firestore, clock: any Clock<Duration>) {
    let leases = firestore.collection(Self.collection)
    reference = leases.document(name)
    run = leases.document().id
    self.clock = clock
  }

  /// Runs work while holding the lease, and always releases the lease afterwards.
  ///
  /// If another run holds the lease, this waits for its end, but only until it is certain that the
  /// other run is alive. Then it throws `LeaseError`. If the lease is lost, because the database
  /// cannot be reached or the document was deleted, the work is cancelled and `LeaseError` is
  /// thrown. Also throws `FirestoreError` and any error of the work.
  func hold<Output: Sendable>(
    _ work: @escaping @Sendable () async throws -> Output
  ) async throws -> Output {
    do {
      try await take()
      let output = try await renewing(work)
      await release()
      return output
    } catch {
      await release()
      throw error
    }
  }

  // MARK: Taking

  private func take() async throws {
    guard try await takeUnlessHeld() != nil else { return }
    let isTaken = try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        try await clock.sleep(for: Self.waitMax)
        return false
      }
      group.addTask {
        for try await snapshot in reference.snapshots() where !snapshot.exists {
          if try await takeUnlessHeld() == nil { return true }
        }
        return false
      }
      defer { group.cancelAll() }
      return try await group.next() ?? false
    }
    if !isTaken, let holder = try await takeUnlessHeld() {
      throw LeaseError(
        "\(reference.path) is held by the run \(holder), and there is one run at a time. Wait for "
          + "its end, then call again."
      )
    }
  }

  /// Takes the lease and returns nil, or returns the run that holds it.
  private func takeUnlessHeld() async throws -> String? {
    typealias Other = (run: String?, isDead: Bool)
    let other = try await reference.firestore.runTransaction { transaction async throws -> Other in
      let snapshot = try await transaction.get(reference)
      let other = snapshot.exists && !isOwn(snapshot) ? snapshot.runName : nil
      let isDead = snapshot.isOlder(than: Self.lifetime)
      if other == nil || isDead {
        try transaction.set(reference, ["run": .value(run), "renewedAt": .serverTimestamp])
      }
      return (other, isDead)
    }
    guard let run = other.run, other.isDead else { return other.run }
    Logger.current.warning(
      "A run ended without giving back its lease",
      metadata: ["lease.path": "\(reference.path)", "lease.run": "\(run)"]
    )
    return nil
  }

  private func isOwn(_ snapshot: DocumentSnapshot) -> Bool { snapshot["run"] == .string(run) }

  // MARK: Holding

  private func renewing<Output: Sendable>(
    _ work: @escaping @Sendable () async throws -> Output
  ) async throws -> Output {
    try await withThrowingTaskGroup(of: Output.self) { group in
      group.addTask { try await work() }
      group.addTask {
        while true {
          try await clock.sleep(for: Self.renewalInterval)
          try await renewInTime()
        }
      }
      defer { group.cancelAll() }
      guard let output = try await group.next() else { throw CancellationError() }
      return output
    }
  }

  private func renewInTime() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        try await clock.sleep(for: Self.renewalTimeMax)
        throw lost("the database did not answer for \(Self.renewalTimeMax)")
      }
      group.addTask {
        while true {
          do {
            return try await renew()
          } catch is FirestoreError {
            // The database may recover soon. The time limit of a renewal ends these attempts.
            try await clock.sleep(for: Self.renewalRetryWait)
          }
        }
      }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  private func renew() async throws {
    try await reference.firestore.runTransaction { transaction in
      let snapshot = try await transaction.get(reference)
      guard isOwn(snapshot) else {
        throw lost(snapshot.exists ? "the run \(snapshot.runName) took it" : "somebody deleted it")
      }
      try transaction.update(reference, ["renewedAt": .serverTimestamp])
    }
  }

  private func lost(_ reason: String) -> LeaseError {
    LeaseError(
      "The run \(run) lost \(reference.path), because \(reason), and stopped. What was done is "
        + "kept; call again to continue."
    )
  }

  private func release() async {
    // This function waits for the task. A separate task lets a cancelled run release its lease.
    await Task {
      // A lease that is not released becomes free after its lifetime.
      try? await reference.firestore.runTransaction { transaction in
        if isOwn(try await transaction.get(reference)) { try transaction.delete(reference) }
      }
    }.value
  }
}

/// The error of a run that did not get its lease, or lost it.
public struct LeaseError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A description of the failure, with what to do.
  public var message: String
  /// The text of `message`.
  public var description: String { message }

  init(_ message: String) {
    self.message = message
  }
}

extension DocumentSnapshot {
  /// The id of the run in a lease.
  ///
  /// The document may have been written by hand.
  fileprivate var runName: String {
    guard case .string(let run)? = self["run"] else { return "without a name" }
    return run
  }

  /// Returns true if the last change is longer ago than `age`, by the database's clock.
  fileprivate func isOlder(than age: Duration) -> Bool {
    guard let updateTime else { return false }
    return .microseconds(readTime.microseconds - updateTime.microseconds) > age
  }
}
