import StorageEngine
import Synchronization

/// A limited number of connections, each lent to one reader at a time, in order of arrival.
final class ReaderPool: Sendable {
  private typealias Lease = CheckedContinuation<SQLiteConnection, any Error>

  private struct State {
    var idle: [SQLiteConnection] = []
    /// The number of open connections, including those that are lent.
    var openCount = 0
    var waiters: [(id: UInt64, continuation: Lease)] = []
    var cancelled: Set<UInt64> = []
    var nextID: UInt64 = 0
    var isClosed = false
    var closing: [CheckedContinuation<Void, Never>] = []

    /// Takes the callers of `close` that can be resumed because no connection is open.
    mutating func takeClosing() -> [CheckedContinuation<Void, Never>] {
      guard isClosed, openCount == 0 else { return [] }
      defer { closing = [] }
      return closing
    }
  }

  private enum Step {
    case use(SQLiteConnection)
    case open
    case wait
    case fail(any Error)
  }

  private let state = Mutex(State())
  private let connectionsMax: Int
  private let open: @Sendable () throws -> SQLiteConnection

  init(connectionsMax: Int, open: @escaping @Sendable () throws -> SQLiteConnection) {
    self.connectionsMax = connectionsMax
    self.open = open
  }

  /// Returns a connection without a transaction.
  ///
  /// The caller must call `release` afterwards.
  func acquire() async throws -> SQLiteConnection {
    let (id, step) = state.withLock { state -> (UInt64, Step) in
      state.nextID += 1
      return (state.nextID, self.firstStep(&state))
    }
    switch step {
    case .use(let connection): return connection
    case .fail(let error): throw error
    case .open: return try openConnection()
    case .wait: return try await wait(id)
    }
  }

  /// Takes a connection back.
  ///
  /// If it is still inside a transaction, it is closed instead of reused.
  func release(_ connection: SQLiteConnection) {
    enum Next {
      case none
      case hand(Lease)
      case replace(Lease)
      case gone([CheckedContinuation<Void, Never>])
    }
    let isBroken = connection.isInTransaction
    let next = state.withLock { state -> Next in
      if !state.isClosed, !state.waiters.isEmpty {
        let waiter = state.waiters.removeFirst().continuation
        return isBroken ? .replace(waiter) : .hand(waiter)
      }
      if !state.isClosed, !isBroken {
        state.idle.append(connection)
        return .none
      }
      state.openCount -= 1
      return .gone(state.takeClosing())
    }
    switch next {
    case .none: break
    case .hand(let waiter): waiter.resume(returning: connection)
    case .replace(let waiter): waiter.resume(with: Result { try openConnection() })
    case .gone(let closing): for end in closing { end.resume() }
    }
  }

  /// Refuses further reads and returns when the running reads have ended.
  func close() async {
    await withCheckedContinuation { continuation in
      let (waiters, closing) = state.withLock { state in
        state.isClosed = true
        state.openCount -= state.idle.count
        state.idle = []
        state.closing.append(continuation)
        defer { state.waiters = [] }
        return (state.waiters, state.takeClosing())
      }
      for waiter in waiters { waiter.continuation.resume(throwing: SQLiteStore.closed) }
      for end in closing { end.resume() }
    }
  }

  private func firstStep(_ state: inout State) -> Step {
    if state.isClosed { return .fail(SQLiteStore.closed) }
    if let connection = state.idle.popLast() { return .use(connection) }
    guard state.openCount < connectionsMax else { return .wait }
    state.openCount += 1
    return .open
  }

  private func openConnection() throws -> SQLiteConnection {
    do {
      return try open()
    } catch {
      let (waiters, closing) = state.withLock { state in
        state.openCount -= 1
        // No reader is left that could pass a connection on to the waiting readers.
        let waiters = state.openCount == 0 ? state.waiters : []
        if state.openCount == 0 { state.waiters = [] }
        return (waiters, state.takeClosing())
      }
      for waiter in waiters { waiter.continuation.resume(throwing: error) }
      for end in closing { end.resume() }
      throw error
    }
  }

  private func wait(_ id: UInt64) async throws -> SQLiteConnection {
    // A cancellation after the wait has ended leaves this entry behind.
    defer { state.withLock { _ = $0.cancelled.remove(id) } }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        // A connection may have been released, or the task cancelled, since the first step.
        let step = state.withLock { state -> Step in
          if state.cancelled.remove(id) != nil { return .fail(CancellationError()) }
          let step = self.firstStep(&state)
          if case .wait = step { state.waiters.append((id, continuation)) }
          return step
        }
        switch step {
        case .wait: break
        case .use(let connection): continuation.resume(returning: connection)
        case .fail(let error): continuation.resume(throwing: error)
        case .open: continuation.resume(with: Result { try openConnection() })
        }
      }
    } onCancel: {
      let waiter = state.withLock { state -> Lease? in
        guard let index = state.waiters.firstIndex(where: { $0.id == id }) else {
          state.cancelled.insert(id)
          return nil
        }
        return state.waiters.remove(at: index).continuation
      }
      waiter?.resume(throwing: CancellationError())
    }
  }
}
