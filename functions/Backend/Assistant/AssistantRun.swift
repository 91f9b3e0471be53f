import FirestoreClient
import PsstModels

/// The execution of one question's loop.
///
/// It asks the model, calls the tools and collects the actions.
struct AssistantRun {
  let model: AssistantModel
  private(set) var tools: AssistantTools
  let onEvent: @Sendable (Assistant.Event) async throws -> Void
  /// The actions that were done, proposed or refused so far, without duplicates.
  private(set) var actions: [Assistant.Action]
  /// The tool calls made so far; a loop's limits bound their number.
  private(set) var toolCalls: [AIAnswer.ToolCall] = []
  /// The tokens used so far.
  private(set) var usage = TokenUsage()

  /// Creates a run that continues after `actions`, recorded by earlier attempts.
  init(
    model: AssistantModel,
    tools: AssistantTools,
    after actions: [Assistant.Action],
    onEvent: @escaping @Sendable (Assistant.Event) async throws -> Void
  ) {
    self.model = model
    self.tools = tools
    self.actions = actions
    self.onEvent = onEvent
  }

  /// Runs a loop to its end.
  ///
  /// After the first action or text, a failure becomes part of the ending. Before that, this throws
  /// `Assistant.AnswerError` and `FirestoreError`. It always throws
  /// `AssistantMemory.ClaimLostError` and any error that `onEvent` throws.
  mutating func end(of loop: AssistantLoop) async throws -> AssistantLoop.Ending {
    var loop = loop
    while true {
      switch loop.next {
      case .ask(let turns, let withTools): try await ask(turns, withTools, &loop)
      case .call(let calls): try await call(calls, &loop)
      case .end(let ending): return ending
      }
    }
  }

  private mutating func ask(
    _ turns: [ChatTurn],
    _ withTools: Bool,
    _ loop: inout AssistantLoop
  ) async throws {
    let onEvent = onEvent
    let outcome = try await model.ask(
      turns,
      tools: withTools ? try tools.descriptions() : []
    ) { text in
      try await onEvent(.text(text))
    }
    switch outcome {
    case .reply(let reply):
      usage += reply.usage
      loop.said(reply)
    case .timeIsUp(let said):
      loop.stop(for: .time, saying: said)
    case .failed(let error, let said):
      usage += error.usage
      guard !actions.isEmpty || !said.isEmpty else {
        throw Assistant.AnswerError.unavailable(error)
      }
      loop.stop(for: error.kind == .limitReached ? .spending : .unavailable, saying: said)
    }
  }

  private mutating func call(_ calls: [ToolCall], _ loop: inout AssistantLoop) async throws {
    var results: [ToolResult] = []
    for call in calls {
      guard !model.deadline.isOver else {
        loop.stop(for: .time)
        break
      }
      toolCalls.append(AIAnswer.ToolCall(name: call.name, arguments: call.arguments))
      try await onEvent(.toolBegins(call.name))
      do {
        let outcome = try await tools.call(call)
        results.append(outcome.result)
        if let recorded = outcome.action {
          let action = Assistant.Action(id: recorded.id, record: recorded.action)
          if let index = actions.firstIndex(where: { $0.id == action.id }) {
            actions[index] = action
          } else {
            actions.append(action)
          }
        }
      } catch let error as FirestoreError {
        guard !actions.isEmpty || loop.hasSpoken else { throw error }
        loop.stop(for: .unavailable)
        break
      }
      try await onEvent(.toolEnds(call.name))
    }
    loop.answered(results)
  }
}
