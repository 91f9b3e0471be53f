import RuntimeSupport
import Synchronization

/// The lock table and the tasks that wait for it.
///
/// It decides under a mutex and resumes tasks outside of it.
final class DocumentLocks: Sendable {
  private struct State {
    var table = LockTable()
    var waiting: [LockTable.Ticket: CheckedContinuation<Void, any Error>] = [:]
    /// Requests that were decided before their task got to wait.
    var decided: [LockTable.Ticket: Result<Void, any Error>] = [:]
  }

  /// Returns at the end of the time to wait; throws when cancelled.
  typealias Deadline = @Sendable () async throws -> Void

  private let state = Mutex(State())
  private let waitersMax: Int

  /// An empty table; more than `waitersMax` waiting requests are refused.
  init(waitersMax: Int) {
    self.waitersMax = waitersMax
  }

  /// How many requests wait.
  var waitingCount: Int { state.withLock { $0.table.waitingCount } }

  /// Whether nobody holds or waits for anything.
  var isEmpty: Bool { state.withLock { $0.table.isEmpty } }

  /// Waits until the request is granted.
  ///
  /// Throws `ABORTED` at the deadline or when a deadlock is broken here. At the deadline the owner
  /// keeps the locks it held; in a deadlock it loses all of them.
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
      // Cancelled below as soon as the request is decided.
      defer { group.cancelAll() }
      try await self.wait(for: ticket)
    }
  }

  /// How an owner should lock what it reads; see `LockTable.modeForReading`.
  func modesForReading(_ keys: Set<LockKey>, by owner: LockOwner) -> [LockKey: LockMode] {
    state.withLock { state in
      Dictionary(
        uniqueKeysWithValues: keys.map { ($0, state.table.modeForReading($0, by: owner)) }
      )
    }
  }

  /// Takes the locks only if nothing stands in the way.
  func tryAcquire(_ request: LockRequest, by owner: LockOwner) -> Bool {
    state.withLock { $0.table.tryRequest(request, by: owner) }
  }

  /// Gives back everything an owner holds; the owner's waiting requests throw `ABORTED`.
  func release(_ owner: LockOwner) {
    act { $0.table.release(owner).map(Decision.init) }
  }

  /// Gives back what an owner took to commit, but not what it had read.
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

  /// Takes a request out of the queue, unless it has been decided.
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

  /// What the loser of a deadlock is told.
  static let contention = StatusError(
    .aborted,
    "Aborted due to cross-transaction contention. This occurs when multiple transactions attempt "
      + "to access the same data; at least one has to be aborted. Try the transaction again."
  )

  /// What a request that has waited too long is told.
  static let timeout = StatusError(
    .aborted,
    "Too much contention on these documents. Please try again."
  )
}
