import FirestoreClient
import Logging
import PsstModels

/// The messages of one sender that wait for their delivery.
///
/// Each chat has its own order, and chats do not wait for each other. While a commit of a chat is
/// on its way, the messages that come go together with the next one, so that none waits for a
/// response to each message before. The server gives them the same time, and their ids keep the
/// order.
actor MessageQueue {
  /// The outcome of one attempt to deliver some messages, which are written all or not at all.
  enum Attempt: Sendable {
    /// The messages are in the database since the given time; nil if an earlier attempt wrote one.
    case delivered(at: Timestamp?)
    /// The server refuses a message, and will refuse it again.
    case refused(MessageError)
    /// The messages cannot be delivered now.
    case later
    /// The server has made a mistake, which may last or be over at the next attempt.
    case failed

    /// True if the reason may be one message of several, without which the others are delivered.
    var dividesBatch: Bool {
      switch self {
      case .delivered(at: nil), .refused, .failed: true
      case .delivered, .later: false
      }
    }
  }

  /// The messages of one chat that are not, or may not yet be, in the server's snapshots.
  struct Contents: Sendable {
    /// The messages that wait, and those that were refused, in the order of sending.
    var queued: [QueuedMessage]
    /// The last delivered messages, with the times of their delivery.
    var delivered: [(message: QueuedMessage, time: Timestamp)]
  }

  private let store: any MessageQueueStore
  private let deliver: @Sendable ([QueuedMessage]) async -> Attempt
  private let pause: @Sendable (Duration) async throws -> Void
  /// All messages in the order of their ids, also those that were refused.
  private var messages: [QueuedMessage] = []
  private var delivered: [(message: QueuedMessage, time: Timestamp)] = []
  private var ids = SortableID()
  private var observers: [Int: Observer] = [:]
  private var observersCount = 0
  /// The chats whose messages are being delivered now.
  private var lanes: Set<String> = []
  private var arrivals: AsyncStream<String>.Continuation?
  /// The calls of `run` that wait for the end of the one before.
  private var successors: [AsyncStream<Void>.Continuation] = []
  /// The waits of chats until the next attempt.
  private var waits: [String: Task<Void, Never>] = [:]

  private struct Observer {
    var chatID: String
    var continuation: AsyncStream<Contents>.Continuation
  }

  /// Creates a queue with the messages that a sender has in a store.
  init(
    store: any MessageQueueStore,
    senderID: String,
    pause: @escaping @Sendable (Duration) async throws -> Void,
    deliver: @escaping @Sendable ([QueuedMessage]) async -> Attempt
  ) {
    self.store = store
    self.pause = pause
    self.deliver = deliver
    do {
      messages = try store.load().filter { $0.senderID == senderID }
    } catch {
      Logger.current.error(
        "The queued messages cannot be read",
        metadata: ["reason": "\(error)"]
      )
    }
    for message in messages { ids.follow(message.id) }
  }

  // MARK: Changes

  /// Adds a message without an id yet, and returns it once it is stored.
  ///
  /// Throws `MessageError.queueFull`, and the error of the store.
  func add(_ draft: QueuedMessage) throws -> QueuedMessage {
    // Messages of a chat that refuses them take no other chat's place.
    guard messages.count < Self.messagesMax,
      messages.count(where: { $0.chatId == draft.chatId }) < Self.messagesOfChatMax
    else { throw MessageError.queueFull }
    var message = draft
    message.id = ids.next(at: draft.queuedAt.microseconds) { .random(in: 0 ... .max) }
    try store.save(message)
    messages.append(message)
    changed(message.chatId)
    arrivals?.yield(message.chatId)
    return message
  }

  /// Queues a message that was refused once more; does nothing for any other.
  func retry(_ id: String) throws {
    guard let index = messages.firstIndex(where: { $0.id == id }), messages[index].failure != nil
    else { return }
    var message = messages[index]
    message.failure = nil
    try store.save(message)
    messages[index] = message
    changed(message.chatId)
    arrivals?.yield(message.chatId)
  }

  /// Removes a message; one that is being delivered may still arrive.
  func remove(_ id: String) {
    guard let index = messages.firstIndex(where: { $0.id == id }) else { return }
    let message = messages.remove(at: index)
    do {
      try store.remove(id)
    } catch {
      // After the next start, the message is found to be delivered and removed again.
      Logger.current.error(
        "A delivered message cannot be removed from the queue",
        metadata: ["message.id": "\(id)", "reason": "\(error)"]
      )
    }
    changed(message.chatId)
  }

  private func refuse(_ id: String, _ error: MessageError) {
    guard let index = messages.firstIndex(where: { $0.id == id }) else { return }
    messages[index].failure = error.rawValue
    do {
      try store.save(messages[index])
    } catch {
      // After the next start, the server refuses it again.
      Logger.current.error(
        "The refusal of a message cannot be stored",
        metadata: ["message.id": "\(id)", "reason": "\(error)"]
      )
    }
    changed(messages[index].chatId)
  }

  // MARK: Updates

  /// The messages of a chat now and after every change.
  func contents(of chatID: String) -> AsyncStream<Contents> {
    let (stream, continuation) = AsyncStream<Contents>.makeStream(
      bufferingPolicy: .bufferingNewest(1)
    )
    observersCount += 1
    let number = observersCount
    observers[number] = Observer(chatID: chatID, continuation: continuation)
    continuation.onTermination = { _ in
      // Owned by the queue; it ends at once.
      Task { await self.endObserver(number) }
    }
    continuation.yield(currentContents(of: chatID))
    return stream
  }

  private func currentContents(of chatID: String) -> Contents {
    Contents(
      queued: messages.filter { $0.chatId == chatID },
      delivered: delivered.filter { $0.message.chatId == chatID }
    )
  }

  private func endObserver(_ number: Int) { observers[number] = nil }

  private func changed(_ chatID: String) {
    let current = currentContents(of: chatID)
    for observer in observers.values where observer.chatID == chatID {
      observer.continuation.yield(current)
    }
  }

  // MARK: Delivery

  /// Delivers messages until the task is cancelled.
  ///
  /// While another task does so, this one waits to take its place.
  func run() async {
    while arrivals != nil {
      let (ending, continuation) = AsyncStream<Void>.makeStream(
        bufferingPolicy: .bufferingNewest(1)
      )
      successors.append(continuation)
      for await _ in ending {}
      if Task.isCancelled { return }
    }
    // One element for each message that waits, and their number is limited.
    let (stream, continuation) = AsyncStream<String>.makeStream(bufferingPolicy: .unbounded)
    arrivals = continuation
    defer {
      arrivals = nil
      for successor in successors { successor.finish() }
      successors = []
    }
    for chatID in Set(messages.filter { $0.failure == nil }.map(\.chatId)) {
      continuation.yield(chatID)
    }
    await withDiscardingTaskGroup { group in
      for await chatID in stream {
        guard lanes.insert(chatID).inserted else { continue }
        group.addTask { await self.deliverAll(in: chatID) }
      }
    }
  }

  /// Ends all waits, because the connection is back.
  func retryNow() {
    for wait in waits.values { wait.cancel() }
  }

  private func deliverAll(in chatID: String) async {
    var failures = 0
    var mistakes = 0
    // The number of messages that go one by one, after a commit of all of them has failed.
    var singles = 0
    while !Task.isCancelled {
      let waiting = messages.lazy.filter { $0.chatId == chatID && $0.failure == nil }
      let batch = Self.batch(of: waiting.prefix(singles > 0 ? 1 : Self.batchMax))
      guard let message = batch.first else { break }
      let attempt = await deliver(batch)
      if batch.count > 1, attempt.dividesBatch {
        singles = batch.count
        continue
      }
      switch attempt {
      case .delivered(let time):
        for message in batch { settle(message, deliveredAt: time) }
        singles = max(0, singles - 1)
        (failures, mistakes) = (0, 0)
      case .refused(let error):
        refuse(message.id, error)
        singles = max(0, singles - 1)
        (failures, mistakes) = (0, 0)
      case .failed where mistakes >= Self.mistakesMax:
        // The server cannot take this message, and the next ones of the chat wait for it.
        refuse(message.id, .refused)
        singles = max(0, singles - 1)
        (failures, mistakes) = (0, 0)
      case .failed:
        failures += 1
        mistakes += 1
        await wait(afterFailures: failures, in: chatID)
      case .later:
        failures += 1
        await wait(afterFailures: failures, in: chatID)
      }
    }
    lanes.remove(chatID)
  }

  /// Returns the first message, and the next ones while together they are short.
  private static func batch(of waiting: some Sequence<QueuedMessage>) -> [QueuedMessage] {
    var batch: [QueuedMessage] = []
    var bytes = 0
    for message in waiting {
      bytes += message.text.utf8.count
      guard batch.isEmpty || bytes <= batchBytesMax else { break }
      batch.append(message)
    }
    return batch
  }

  private func settle(_ message: QueuedMessage, deliveredAt time: Timestamp?) {
    if let time, messages.contains(where: { $0.id == message.id }) {
      delivered = delivered.suffix(Self.deliveredMax - 1) + [(message, time)]
    }
    remove(message.id)
  }

  private func wait(afterFailures failures: Int, in chatID: String) async {
    let delay = Self.backOff.delay(afterFailures: failures, random: Double.random(in: 0..<1))
    // A task of its own, so that `retryNow` can end the wait. It ends with the wait at the latest.
    let wait = Task { [pause] in
      do { try await pause(delay) } catch { return }
    }
    waits[chatID] = wait
    await withTaskCancellationHandler {
      await wait.value
    } onCancel: {
      wait.cancel()
    }
    waits[chatID] = nil
  }

  /// The maximum numbers of messages that wait, or were refused, on one device and in one chat.
  private static let messagesMax = 5000
  private static let messagesOfChatMax = 500
  /// The maximum number of messages in one commit, few enough for a slow connection.
  private static let batchMax = 20
  /// As many bytes of text as a slow line carries within the time limit of a call.
  private static let batchBytesMax = 40_000
  /// The number of delivered messages that are kept until the server's snapshots show them.
  private static let deliveredMax = 100
  /// The number of mistakes of the server after which a message counts as refused.
  private static let mistakesMax = 10
  /// With jitter, so that devices that were cut off together do not come back together.
  private static let backOff = BackOff(initial: .seconds(1), maximum: .seconds(30), jitter: 0.5)
}
