/// The state machine that decides an assistant's next step.
///
/// It calls no model and no tool, and has no clock. The caller performs the step in `next` and
/// reports its result, so tests can run a loop without other services.
struct AssistantLoop: Sendable {
  /// The limits of one question.
  struct Limits: Sendable, Hashable {
    /// The maximum number of requests to the model.
    var stepsMax = 6
    /// The maximum number of tool calls in one step; further calls are refused.
    var callsPerStepMax = 8
    /// The number of tokens after which the model must answer without more tools.
    var tokensMax = 30_000
    /// The number of invalid calls a model may correct.
    ///
    /// After one more invalid call it must answer without tools.
    var correctionsMax = 1
    /// The maximum size of all tool results together, in bytes; further results are withheld.
    var resultBytesMax = 40_000
  }

  /// The next step for the caller.
  enum Next: Sendable, Hashable {
    /// Ask the model. Without tools it must answer.
    case ask([ChatTurn], withTools: Bool)
    /// Call the tools, and report all results.
    case call([ToolCall])
    /// End with this answer.
    case end(Ending)
  }

  /// The end of a question, with its answer and reason.
  struct Ending: Sendable, Hashable {
    /// The text of the answer; empty if the model said nothing.
    var text: String
    var reason: Reason

    /// The reason that the answer is incomplete, for the caller; nil if it is complete.
    var limitation: String? {
      switch reason {
      case .answered: text.isEmpty ? "The assistant gave no answer." : nil
      case .cutOff: "The answer became too long and is cut off."
      case .steps, .tokens: "The assistant came to no answer within what one question may use."
      case .spending: "Today's limit was reached before the answer was complete."
      case .time: "The answer took too long and is not complete."
      case .unavailable: "The assistant became unavailable before its answer was complete."
      }
    }
  }

  /// The reason that a loop ended.
  enum Reason: String, Sendable, Hashable, Codable {
    /// The model answered.
    case answered
    /// The model's answer reached the length limit and was cut off.
    case cutOff
    /// The limit of requests to the model was reached.
    case steps
    /// The limit of tokens was reached.
    case tokens
    /// The spending limit of the day was reached.
    case spending
    /// No time is left for another step.
    case time
    /// The model, or a service that a tool needs, became unavailable.
    case unavailable
  }

  /// One turn of the model, with the results of its tool calls.
  struct Step: Sendable, Hashable {
    var reply: ChatReply
    var results: [ToolResult] = []
  }

  let limits: Limits
  private let question: [ChatTurn]
  private(set) var steps: [Step] = []
  private var wrongCalls = 0
  private var resultBytes = 0
  private var stop: Ending?

  /// Creates a loop for a question with its instructions and context.
  init(_ question: [ChatTurn], limits: Limits = Limits()) {
    self.question = question
    self.limits = limits
  }

  /// The tokens used by all steps.
  var usage: TokenUsage { steps.reduce(TokenUsage()) { $0 + $1.reply.usage } }

  /// True if the model has produced text, not only tool calls.
  var hasSpoken: Bool { steps.contains { !$0.reply.text.isEmpty } }

  /// The next step, which changes only when the caller reports a result.
  var next: Next {
    guard let last = steps.last else {
      return stop.map { .end($0) } ?? .ask(question, withTools: true)
    }
    if last.reply.calls.isEmpty {
      let reason = last.reply.isCutOff ? Reason.cutOff : .answered
      return .end(stop ?? Ending(text: last.reply.text, reason: reason))
    }
    // Calls that the model has already made are completed.
    if last.results.isEmpty {
      return .call(Array(last.reply.calls.prefix(limits.callsPerStepMax)))
    }
    if let stop { return .end(stop) }
    if steps.count >= limits.stepsMax { return .end(Ending(text: last.reply.text, reason: .steps)) }
    return .ask(turns, withTools: reasonToAnswer == nil)
  }

  /// The reason that the next turn of the model must be its answer; nil if there is none.
  private var reasonToAnswer: Reason? {
    if steps.count == limits.stepsMax - 1 { return .steps }
    if usage.totalTokens >= limits.tokensMax { return .tokens }
    return wrongCalls > limits.correctionsMax ? .answered : nil
  }

  /// The question, and the model's turns and tool results so far.
  private var turns: [ChatTurn] {
    question
      + steps.flatMap { step -> [ChatTurn] in
        [.assistant(step.reply.text, calls: step.reply.calls)]
          + zip(step.reply.calls, step.results).map { .tool($1.text, callID: $0.id) }
      }
  }

  // MARK: Reports of the caller

  /// Records a turn of the model.
  ///
  /// Missing and duplicate ids of calls are replaced by unique ids.
  mutating func said(_ reply: ChatReply) {
    var reply = reply
    if let reason = reasonToAnswer {
      // The model was offered no tools for this turn.
      reply.calls = []
      if reply.text.isEmpty { stop(for: reason) }
    }
    var ids: Set<String> = []
    for index in reply.calls.indices {
      if reply.calls[index].id.isEmpty || ids.contains(reply.calls[index].id) {
        reply.calls[index].id = "call_\(steps.count)_\(index)"
      }
      ids.insert(reply.calls[index].id)
    }
    steps.append(Step(reply: reply))
  }

  /// Records the results of the tool calls, in the order of the calls.
  ///
  /// Calls beyond the limit per step get a refusal as their result.
  mutating func answered(_ results: [ToolResult]) {
    let excess = steps[steps.count - 1].reply.calls.count - results.count
    let refusal = ToolResult(
      text: #"{"error": "at most \#(limits.callsPerStepMax) calls at a time"}"#,
      isWrongCall: true
    )
    steps[steps.count - 1].results =
      results.map { bounded($0) } + Array(repeating: refusal, count: max(0, excess))
    wrongCalls += results.count { $0.isWrongCall }
  }

  /// Returns a result, or an error in its place if the size limit is reached.
  private mutating func bounded(_ result: ToolResult) -> ToolResult {
    guard resultBytes + result.text.utf8.count <= limits.resultBytesMax else {
      var result = result
      result.text = #"{"error": "no room for more results; answer with what you have"}"#
      return result
    }
    resultBytes += result.text.utf8.count
    return result
  }

  /// Ends the loop with the text that the model was producing.
  ///
  /// If `text` is empty, the text of its last turn is used.
  mutating func stop(for reason: Reason, saying text: String = "") {
    let words = text.isEmpty ? steps.last?.reply.text ?? "" : text
    stop = stop ?? Ending(text: words, reason: reason)
  }
}

/// The result of a tool call.
struct ToolResult: Sendable, Hashable {
  /// The text that the model reads.
  var text: String
  /// True if the call was invalid: an unknown tool or wrong arguments.
  var isWrongCall = false
}
