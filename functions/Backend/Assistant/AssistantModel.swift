import Synchronization

/// A model for one question: it charges the question's caller and stops at the deadline.
struct AssistantModel: Sendable {
  private let model: any ChatModel
  private let payer: Payer
  private let clock: any Clock<Duration>
  let deadline: AssistantDeadline

  init(
    _ model: any ChatModel,
    for payer: Payer,
    until deadline: AssistantDeadline,
    on clock: any Clock<Duration>
  ) {
    self.model = model
    self.payer = payer
    self.clock = clock
    self.deadline = deadline
  }

  /// The outcome of a request to the model.
  enum Outcome: Sendable {
    case reply(ChatReply)
    /// The time ran out, with the text received by then.
    case timeIsUp(said: String)
    /// The model failed, with the text received by then.
    case failed(ServiceError, said: String)
  }

  /// Requests the next turn of a conversation, within a time limit and the deadline.
  ///
  /// Throws any error that `onText` throws, and `CancellationError`.
  func ask(
    _ turns: [ChatTurn],
    tools: [ToolDescription] = [],
    atMost time: Duration? = nil,
    onText: @escaping @Sendable (String) async throws -> Void = { _ in }
  ) async throws -> Outcome {
    let left = min(deadline.left, time ?? deadline.left)
    guard left > .zero else { return .timeIsUp(said: "") }
    let said = SpokenText()
    return try await withThrowingTaskGroup(of: ChatReply?.self) { group in
      group.addTask {
        try await model.reply(to: turns, tools: tools, for: payer) { text in
          said.add(text)
          try await onText(text)
        }
      }
      group.addTask {
        try await clock.sleep(for: left)
        return nil
      }
      defer { group.cancelAll() }
      do {
        guard let first = try await group.next(), let reply = first else {
          return .timeIsUp(said: said.text)
        }
        return .reply(reply)
      } catch let error as ServiceError {
        return .failed(error, said: said.text)
      }
    }
  }
}

/// The text that a model has produced so far.
private final class SpokenText: Sendable {
  private let all = Mutex("")
  var text: String { all.withLock { $0 } }
  func add(_ text: String) { all.withLock { $0 += text } }
}
