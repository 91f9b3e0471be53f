import HTTPMessages
import HTTPSupport
import JSONText
import StatusCodes
import Synchronization

/// A session: the messages in both directions and the tasks that wait for them.
///
/// The handler runs in a task that the session owns and that ends with the session.
final class WebChannelSession: Sendable {
  private struct Guarded {
    var state = WebChannelState()
    var isOver = false
    var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    var lastWaiter: UInt64 = 0
    var task: Task<Void, Never>?
    /// True if a back channel was open since the last check of `abandoned()`.
    var hadBackChannel = false
    /// The number of the last use among those of all sessions.
    var lastUse: UInt64 = 0
    /// The part of `state.heldLength` that is counted in the total of all sessions.
    var countedLength = 0
    /// The part of `state.heldLength` that is held in the budget.
    var budgetedLength = 0

    mutating func takeWaiters() -> [CheckedContinuation<Void, Never>] {
      defer { waiters = [:] }
      return Array(waiters.values)
    }
  }

  let id: String
  private let configuration: WebChannels.Configuration
  private let clock: any Clock<Duration>
  private let heldLengths: HeldLengths
  private let budget: TransferBudget?
  /// The session's hold in the budget.
  ///
  /// Its lock is held while the budget is asked, when `guarded` is not locked.
  private let hold = Mutex<TransferHold?>(nil)
  private let onEnd: @Sendable (_ id: String) -> Void
  private let guarded = Mutex(Guarded())

  /// Creates a session without a handler; `onEnd` is called once, when the session ends.
  init(
    id: String,
    configuration: WebChannels.Configuration,
    clock: any Clock<Duration>,
    heldLengths: HeldLengths,
    budget: TransferBudget? = nil,
    onEnd: @escaping @Sendable (_ id: String) -> Void
  ) {
    self.id = id
    self.configuration = configuration
    self.clock = clock
    self.heldLengths = heldLengths
    self.budget = budget
    self.onEnd = onEnd
  }

  /// Runs the handler, then waits until the client has received the remaining messages.
  func start(_ handler: @escaping @Sendable () async throws -> Void) {
    // The session cancels the task when it ends.
    let task = Task {
      await withTaskGroup(of: Void.self) { group in
        group.addTask {
          do {
            try await handler()
          } catch {
            self.change {
              $0.append(payload: "[\(GoogleErrorBody.rest(StatusError.publicError(for: error)))]")
            }
          }
          self.change { $0.complete() }
          await self.delivered()
        }
        group.addTask { await self.abandoned() }
        await group.next()
        self.end()
      }
    }
    let isOver = guarded.withLock { guarded in
      guarded.task = task
      return guarded.isOver
    }
    if isOver { task.cancel() }
  }

  /// Ends the session immediately; all waiting tasks stop waiting.
  func end() {
    let (task, waiters, isFirst) = guarded.withLock { guarded in
      defer { guarded.isOver = true }
      return (guarded.task, guarded.takeWaiters(), !guarded.isOver)
    }
    for waiter in waiters { waiter.resume() }
    task?.cancel()
    guard isFirst else { return }
    heldLengths.add(-guarded.withLock { $0.countedLength })
    hold.withLock { $0 = nil }
    onEnd(id)
  }

  /// Counts unacknowledged messages in the budget; ends the session if the budget is full.
  private func holdUnacknowledged() {
    guard let budget else { return }
    let isKept = hold.withLock { hold in
      let lengths: (before: Int, now: Int)? = guarded.withLock { guarded in
        let length = guarded.state.heldLength
        let counted = length < configuration.heldLengthMin ? 0 : length
        guard !guarded.isOver, counted != guarded.budgetedLength else { return nil }
        defer { guarded.budgetedLength = counted }
        return (guarded.budgetedLength, counted)
      }
      guard let lengths else { return true }
      guard lengths.now > 0 else {
        hold = nil
        return true
      }
      let present =
        hold
        ?? TransferHold(budget) { [weak self] in
          // The budget calls this under the locks of the session that asks it, so this session ends
          // in a separate, short task.
          Task { [weak self] in self?.end() }
        }
      hold = present
      present.moved(max(0, lengths.before - lengths.now))
      return present.set(lengths.now)
    }
    if !isKept { end() }
  }

  /// Records a request of the client, or its end.
  func use(_ number: UInt64) { guarded.withLock { $0.lastUse = max($0.lastUse, number) } }

  /// Returns true if this session is the one to end if only one of two can stay.
  ///
  /// A client that listens has a back channel open and sends nothing for a long time.
  func isIdler(than other: WebChannelSession) -> Bool { idleRank < other.idleRank }

  private var idleRank: (hasBackChannel: Int, lastUse: UInt64) {
    guarded.withLock { ($0.state.hasBackChannel ? 1 : 0, $0.lastUse) }
  }

  // MARK: From the client

  /// Accepts messages once the handler's backlog is short enough, and returns the response's text.
  ///
  /// Returns nil and accepts no message if they are further ahead than any client sends.
  func accept(_ texts: [String], from offset: Int, acknowledging id: Int?) async throws -> String? {
    if let id { change { $0.acknowledge(id) } }
    let bytesMax = configuration.waitingBytesMax
    return try await wait { state -> String?? in
      guard state.waitingBytes <= bytesMax else { return nil }
      return .some(state.accept(texts, from: offset) ? state.report : nil)
    }
  }

  /// Returns the next message, once there is one.
  func next() async throws -> String {
    try await wait { $0.popMessage() }
  }

  // MARK: To the client

  /// Returns once there is room for another message to the client.
  ///
  /// A session below `heldLengthMin` always has room, whatever the other clients hold.
  func waitForRoom() async throws {
    let isHeldUp = guarded.withLock { !hasRoom($0.state) }
    // The back channel must be woken to see the flag; it may have nothing to send.
    if isHeldUp { change { $0.isHeldUp = true } }
    defer { if isHeldUp { change { $0.isHeldUp = false } } }
    try await wait { hasRoom($0) ? () : nil }
  }

  private func hasRoom(_ state: WebChannelState) -> Bool {
    state.heldLength < configuration.heldLengthMin
      || state.heldLength < configuration.heldLengthMax
        && heldLengths.sum < configuration.heldLengthOfAllMax
  }

  func send(_ message: String) {
    change { $0.append(payload: "[\(message)]") }
  }

  /// Sends pending messages until the channel is replaced or full, or the session is over.
  ///
  /// A client acknowledges the messages of a channel when it opens the next one. A channel is
  /// therefore full after `backChannelLengthMax`, and also when it has sent everything and the
  /// handler waits for room. `interval` is the longest silence. A channel that does not stream ends
  /// after its first chunk.
  func backChannel(
    after id: Int,
    streams: Bool,
    interval: Duration,
    _ write: (String) async throws -> Void
  ) async throws {
    let (number, first) = change { $0.openBackChannel(after: id) }
    defer {
      guarded.withLock { $0.hadBackChannel = true }
      change { $0.closeBackChannel(number) }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      group.addTask {
        while true {
          try await self.clock.sleep(for: interval)
          self.change { $0.keepAlive(number) }
        }
      }
      var last = first
      var sent = 0
      while sent < configuration.backChannelLengthMax {
        let chunk = try await wait { [last] state -> WebChannelState.Chunk?? in
          guard state.isOpen(number) else { return .some(nil) }
          if let chunk = state.chunk(after: last) { return chunk }
          return state.isHeldUp && last > first ? .some(nil) : nil
        }
        guard let chunk else { return }
        try await write(chunk.text)
        last = chunk.last
        sent += chunk.text.utf8.count
        if chunk.isLastOfSession || !streams { return }
      }
    }
  }

  // MARK: Waiting

  /// Returns when no back channel has been open for a long time or the task is cancelled.
  private func abandoned() async {
    var isUsed = true
    while isUsed {
      do {
        try await clock.sleep(for: configuration.abandonedAfter)
      } catch {
        return
      }
      isUsed = guarded.withLock { guarded in
        defer { guarded.hadBackChannel = guarded.state.hasBackChannel }
        return guarded.hadBackChannel || guarded.state.hasBackChannel
      }
    }
  }

  /// Returns when the client has received everything or the session is over.
  private func delivered() async {
    // The wait throws if the session ends, which is also a reason to return.
    try? await wait { $0.isComplete && $0.heldLength == 0 ? () : nil }
  }

  @discardableResult
  private func change<Result>(_ body: (inout WebChannelState) -> Result) -> Result {
    let (result, waiters) = guarded.withLock { guarded in
      let result = body(&guarded.state)
      count(&guarded)
      return (result, guarded.takeWaiters())
    }
    for waiter in waiters { waiter.resume() }
    holdUnacknowledged()
    return result
  }

  /// Updates the total of all sessions with the session's held length.
  private func count(_ guarded: inout Guarded) {
    guard !guarded.isOver else { return }
    heldLengths.add(guarded.state.heldLength - guarded.countedLength)
    guarded.countedLength = guarded.state.heldLength
  }

  /// Waits until `check` returns a result, then wakes the other waiters to check again.
  ///
  /// Throws `CancellationError` if the session is over or the task is cancelled.
  private func wait<Result: Sendable>(
    _ check: (inout WebChannelState) -> Result?
  ) async throws -> Result {
    let number = guarded.withLock { guarded in
      guarded.lastWaiter += 1
      return guarded.lastWaiter
    }
    while true {
      var result: Result?
      var waiters: [CheckedContinuation<Void, Never>] = []
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          guarded.withLock { guarded in
            if !guarded.isOver && !Task.isCancelled {
              result = check(&guarded.state)
              count(&guarded)
              guard result != nil else { return guarded.waiters[number] = continuation }
              waiters = guarded.takeWaiters()
            }
            waiters.append(continuation)
          }
          for waiter in waiters { waiter.resume() }
        }
      } onCancel: {
        guarded.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
      }
      if let result { return result }
      if guarded.withLock(\.isOver) { throw CancellationError() }
      try Task.checkCancellation()
    }
  }
}

/// The total length of unacknowledged messages of all sessions, in UTF-16 code units.
final class HeldLengths: Sendable {
  private let length = Atomic(0)

  var sum: Int { length.load(ordering: .relaxed) }

  func add(_ difference: Int) {
    guard difference != 0 else { return }
    length.wrappingAdd(difference, ordering: .relaxed)
  }
}
