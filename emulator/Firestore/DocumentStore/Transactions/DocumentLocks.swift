import StatusCodes
import Synchronization

/// The lock table together with the tasks that wait for its locks.
///
/// Requests are decided under a mutex; tasks are resumed outside of it.
final class DocumentLocks: Sendable {
  private struct State {
    var table = LockTable()
    var waiting: [LockTable.Ticket: CheckedContinuation<Void, any Error>] = [:]
    /// The results of requests that were decided before their task began to wait.
    var decided: [LockTable.Ticket: Result<Void, any Error>] = [:]
  }

  /// A function that returns when the deadline is reached and throws when cancelled.
  typealias Deadline = @Sendable () async throws -> Void

  private let state = Mutex(State())
  private let waitersMax: Int

  /// Creates an empty table that refuses requests while `waitersMax` requests wait.
  init(waitersMax: Int) {
    self.waitersMax = waitersMax
  }

  /// The number of waiting requests.
  var waitingCount: Int { state.withLock { $0.table.waitingCount } }

  /// True if no owner holds or waits for a lock.
  var isEmpty: Bool { state.withLock { $0.table.isEmpty } }

  /// Waits until the request is granted.
  ///
  /// Throws `ABORTED` at the deadline, or if the owner is the victim of a deadlock. At the deadline
  /// the owner keeps the locks it held; in a deadlock it loses all of them. Throws
  /// `RESOURCE_EXHAUSTED` if too many requests wait already.
  func acquire(
    _ request: LockRequest,
    by owner: LockOwner,
    until deadline: @escaping Deadline
  ) async throws {
    let reception = try begin(request, owner)
    guard case .waiting(let ticket) = reception else { return }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        try await deadline()
        self.abandon(ticket, with: Self.timeout)
      }
      // Cancelled as soon as the request is decided.
      defer { group.cancelAll() }
      try await self.wait(for: ticket)
    }
  }

  /// Returns the modes in which an owner should lock what it reads; see `LockTable.modeForReading`.
  func modesForReading(_ keys: Set<LockKey>, by owner: LockOwner) -> [LockKey: LockMode] {
    state.withLock { state in
      Dictionary(
        uniqueKeysWithValues: keys.map { ($0, state.table.modeForReading($0, by: owner)) }
      )
    }
  }

  /// Takes the locks only if the request does not have to wait.
  func tryAcquire(_ request: LockRequest, by owner: LockOwner) -> Bool {
    state.withLock { $0.table.tryRequest(request, by: owner) }
  }

  /// Releases all locks of an owner; the owner's waiting requests throw `ABORTED`.
  func release(_ owner: LockOwner) {
    act { $0.table.release(owner).map(Decision.init) }
  }

  /// Releases the locks that an owner took to commit, but not those of its reads.
  func releaseCommit(_ owner: LockOwner) {
    act { $0.table.releaseCommit(owner).map(Decision.init) }
  }

  private func begin(_ request: LockRequest, _ owner: LockOwner) throws -> LockTable.Reception {
    var reception: LockTable.Reception?
    act { state in
      guard state.table.waitingCount < waitersMax else { return [] }
      let outcome = state.table.request(request, by: owner)
      reception = outcome.reception
      return outcome.actions.map(Decision.init)
    }
    guard let reception else {
      throw StatusError(.resourceExhausted, "\(waitersMax) requests wait for locks; try again")
    }
    return reception
  }

  private func wait(for ticket: LockTable.Ticket) async throws {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let decided = state.withLock { state in
          let decided = state.decided.removeValue(forKey: ticket)
          if decided == nil { state.waiting[ticket] = continuation }
          return decided
        }
        if let decided { continuation.resume(with: decided) }
      }
    } onCancel: {
      abandon(ticket, with: CancellationError())
    }
  }

  /// Removes a request from the queue, unless it has been decided.
  private func abandon(_ ticket: LockTable.Ticket, with error: any Error) {
    act { state in
      guard let actions = state.table.cancel(ticket) else { return [] }
      return [Decision(ticket: ticket, result: .failure(error))] + actions.map(Decision.init)
    }
  }

  /// Changes the table, then resumes the tasks whose requests were decided.
  private func act(_ body: (inout State) -> [Decision]) {
    let resumptions = state.withLock { state in
      body(&state).compactMap { decision -> Resumption? in
        guard let continuation = state.waiting.removeValue(forKey: decision.ticket) else {
          state.decided[decision.ticket] = decision.result
          return nil
        }
        return Resumption(continuation: continuation, result: decision.result)
      }
    }
    for resumption in resumptions { resumption.continuation.resume(with: resumption.result) }
  }

  private struct Resumption {
    var continuation: CheckedContinuation<Void, any Error>
    var result: Result<Void, any Error>
  }

  private struct Decision {
    var ticket: LockTable.Ticket
    var result: Result<Void, any Error>

    init(ticket: LockTable.Ticket, result: Result<Void, any Error>) {
      self.ticket = ticket
      self.result = result
    }

    init(_ action: LockTable.Action) {
      switch action {
      case .granted(let ticket): self.init(ticket: ticket, result: .success(()))
      case .aborted(let ticket):
        self.init(ticket: ticket, result: .failure(DocumentLocks.contention))
      }
    }
  }

  /// The error returned to the transaction that loses a deadlock.
  static let contention = StatusError(
    .aborted,
    "Aborted due to cross-transaction contention. This occurs when multiple transactions attempt "
      + "to access the same data; at least one has to be aborted. Try the transaction again."
  )

  /// The error returned to a request whose wait timed out.
  static let timeout = StatusError(
    .aborted,
    "Too much contention on these documents. Please try again."
  )
}
