import DocumentModel
import EventLog
import Identity
import Logging
import StatusCodes
import StorageEngine
import Synchronization

/// Follows the event log for all listeners and sends each one the changes that concern it.
///
/// Listeners are notified only while `run` is running.
final class ListenHub: Sendable {
  private struct State {
    var table = ListenTable()
    var sessions: [ObjectIdentifier: ListenSession] = [:]
    var sessionsOfClients: [ListenClient: [ObjectIdentifier: ListenSession]] = [:]
  }

  private let state = Mutex(State())
  /// The number of the store, which identifies tokens of other stores; 0 until it is known.
  private let storeNumber = Atomic<UInt64>(0)
  /// Limits the number of listeners that read their initial results at a time.
  let gate = ReadGate(listenersMax)
  private let jobs: AsyncStream<(ListenSession.Job, ListenSession)>
  private let jobSink: AsyncStream<(ListenSession.Job, ListenSession)>.Continuation
  private let readings: AsyncStream<ListenTable.Reading>
  private let readingSink: AsyncStream<ListenTable.Reading>.Continuation

  init() {
    // One element for each target that begins, and the targets of a listener are limited.
    (jobs, jobSink) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    (readings, readingSink) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
  }

  /// Changes the table of subscriptions; `run` performs the reads that the change requires.
  ///
  /// Listeners with queued changes are woken when the lock is released. Waking a task takes the
  /// task's own lock, and a cancellation that holds that lock may be waiting for this one.
  @discardableResult
  func withTable<Result>(_ body: (inout ListenTable) -> sending Result) -> sending Result {
    let (result, readings, deferredWork) = state.withLock { state in
      let result = body(&state.table)
      return (result, state.table.takeReadings(), state.table.takeDeferredWork())
    }
    for reading in readings { readingSink.yield(reading) }
    for session in deferredWork.sessions.values { session.wake() }
    for action in deferredWork.others { action() }
    return result
  }

  func insert(_ session: ListenSession) {
    state.withLock { state in
      state.sessions[ObjectIdentifier(session)] = session
      if let client = session.client {
        state.sessionsOfClients[client, default: [:]][ObjectIdentifier(session)] = session
      }
    }
  }

  func remove(_ session: ListenSession) {
    state.withLock { state in
      _ = state.sessions.removeValue(forKey: ObjectIdentifier(session))
      guard let client = session.client else { return }
      state.sessionsOfClients[client]?[ObjectIdentifier(session)] = nil
      if state.sessionsOfClients[client]?.isEmpty == true { state.sessionsOfClients[client] = nil }
    }
  }

  /// Returns the open listeners of a client.
  func sessions(of client: ListenClient) -> [ListenSession] {
    state.withLock { state in state.sessionsOfClients[client].map { Array($0.values) } ?? [] }
  }

  /// The number of open sessions and of the views they share.
  var counts: (sessions: Int, views: Int) {
    state.withLock { ($0.sessions.count, $0.table.viewCount) }
  }

  var isEmpty: Bool { state.withLock { $0.table.isEmpty && $0.sessions.isEmpty } }

  // MARK: Tokens

  /// Returns the resume token of a time.
  func token(_ time: Timestamp, of database: DatabaseName) -> [UInt8] {
    ResumeToken(
      store: storeNumber.load(ordering: .relaxed),
      database: database,
      readTime: time
    ).bytes
  }

  /// Decodes a client's resume token.
  func read(token: [UInt8], of database: DatabaseName) throws(StatusError) -> ResumeToken.Reading {
    try ResumeToken.read(
      token,
      store: storeNumber.load(ordering: .relaxed),
      database: database
    )
  }

  // MARK: Running

  /// Follows the log until cancelled.
  func run(for store: DocumentDatabase) async throws {
    storeNumber.store(try await store.storeNumber(), ordering: .relaxed)
    let start = try await begin(store)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await self.follow(store, after: start) }
      group.addTask { try await self.sendReadTime(store) }
      group.addTask { await self.readForWindows(store) }
      group.addTask { await self.readForTargets() }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  /// Begins, or begins again, with the commits after those that the store shows.
  private func begin(_ store: DocumentDatabase) async throws -> UInt64 {
    let start = try await store.readLatest(\.snapshot.sequence)
    withTable { $0.begin(after: start.answer, at: start.readTime) }
    return start.answer
  }

  private func follow(_ store: DocumentDatabase, after start: UInt64) async throws {
    // Other tasks wait for records that will not be processed any more.
    defer { withTable { $0.end() } }
    var start = start
    while !Task.isCancelled {
      do {
        for try await entries in store.tailer.entries(after: start) {
          // One at a time: other tasks need the table, and its lock is not fair.
          for entry in entries {
            guard !Task.isCancelled else { return }
            withTable { $0.take(entry) }
            // Lets the tasks that wait for the table's lock take it.
            await Task.yield()
          }
        }
        return
      } catch is EventsTrimmedError {
        store.logger.warning("The listeners fell behind the event log and start over")
        withTable { $0.resetAll() }
        start = try await begin(store)
      }
    }
  }

  /// Periodically sends idle listeners the time up to which they have received every change.
  private func sendReadTime(_ store: DocumentDatabase) async throws {
    while true {
      try await store.clock.sleep(for: store.configuration.listenerTimeInterval)
      guard !state.withLock({ $0.sessions.isEmpty }) else { continue }
      do {
        try await sendReadTimeOnce(store)
      } catch let error as StorageError {
        // The time will be sent on a later iteration; nothing else depends on it.
        store.logger.warning(
          "The read time could not be sent to listeners",
          metadata: ["error": "\(error)"]
        )
      }
    }
  }

  /// Sends idle listeners the current time up to which they have received every change.
  func sendReadTimeOnce(_ store: DocumentDatabase) async throws {
    let (readTime, sequence) = try await store.readPosition()
    withTable { table in
      table.after(sequence) { _ = $0.advance(to: readTime) }
    }
    let sessions = state.withLock { state in
      for session in state.sessions.values { session.deliver(state.table.time) }
      return Array(state.sessions.values)
    }
    for session in sessions { session.wake() }
  }

  /// Queues the read of a target's documents.
  func read(_ job: ListenSession.Job, for session: ListenSession) {
    jobSink.yield((job, session))
  }

  private func readForTargets() async {
    await withDiscardingTaskGroup { group in
      for await (job, session) in jobs { group.addTask { await session.read(job) } }
      group.cancelAll()
    }
  }

  /// Reads documents for windows, several at a time.
  private func readForWindows(_ store: DocumentDatabase) async {
    await withTaskGroup(of: Void.self) { group in
      var running = 0
      for await reading in readings {
        if running >= Self.readsMax, await group.next() != nil { running -= 1 }
        group.addTask { await self.read(reading, store) }
        running += 1
      }
    }
  }

  private func read(_ reading: ListenTable.Reading, _ store: DocumentDatabase) async {
    do {
      let page = try await store.documents(for: reading) { [self] in
        withTable { $0.wants(reading) }
      }
      let last = reading.time == nil ? try await store.readPosition().sequence : 0
      withTable { table in
        table.after(last) {
          $0.filled(reading, with: page.documents, readAt: page.sequence, page.readTime)
        }
      }
    } catch is CancellationError {
      return
    } catch {
      let reported = store.publicError(for: error)
      withTable { $0.failed(reading, reported) }
    }
  }

  private static let readsMax = 8
  /// The maximum number of listeners that read at a time.
  private static let listenersMax = 64
}
