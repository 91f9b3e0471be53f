/// Decides what an assistant does next, from what was said and done so far.
///
/// It asks no model, calls no tool and knows no time of its own: the caller does what `next` says
/// and reports what came of it. A loop therefore runs the same in a test.
struct AssistantLoop: Sendable {
  /// What one question may use.
  struct Limits: Sendable, Hashable {
    /// The most times that the model is asked.
    var stepsMax = 6
    /// The most calls of tools that one step of the model may make; further ones are refused.
    var callsPerStepMax = 8
    /// The tokens after which the model has to answer with what it has.
    var tokensMax = 30_000
    /// The wrong calls that a model may correct; after one more it has to answer without tools.
    var correctionsMax = 1
    /// The bytes of all results of tools together; further ones are withheld.
    var resultBytesMax = 40_000
  }

  /// What to do next.
  enum Next: Sendable, Hashable {
    /// Ask the model; without tools it has to answer.
    case ask([ChatTurn], withTools: Bool)
    /// Call the tools, and report all results.
    case call([ToolCall])
    /// Give this answer.
    case end(Ending)
  }

  /// How a question ended.
  struct Ending: Sendable, Hashable {
    /// The answer; empty when the model said nothing.
    var text: String
    var reason: Reason

    /// What the answer lacks, as the caller may read it; nil for a whole answer.
    var shortcoming: String? {
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

  /// Why nothing more is done.
  enum Reason: String, Sendable, Hashable, Codable {
    /// The model has answered.
    case answered
    /// The model's answer is as long as it may be, and broke off.
    case cutOff
    /// The model has been asked as often as it may be.
    case steps
    /// The question has used as many tokens as it may.
    case tokens
    /// No more money may be spent today.
    case spending
    /// There is no time for another step.
    case time
    /// The model, or what a tool needs, cannot be reached any more.
    case unavailable
  }

  /// One turn of the model, with what its tools answered.
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

  /// A loop for a question, which comes with its instructions and its context.
  init(_ question: [ChatTurn], limits: Limits = Limits()) {
    self.question = question
    self.limits = limits
  }

  /// The tokens of all steps.
  var usage: TokenUsage { steps.reduce(TokenUsage()) { $0 + $1.reply.usage } }

  /// Whether the model has said anything but calls.
  var hasSpoken: Bool { steps.contains { !$0.reply.text.isEmpty } }

  /// What to do next; the same until something is reported.
  var next: Next {
    guard let last = steps.last else {
      return stop.map { .end($0) } ?? .ask(question, withTools: true)
    }
    if last.reply.calls.isEmpty {
      let reason = last.reply.isCutOff ? Reason.cutOff : .answered
      return .end(stop ?? Ending(text: last.reply.text, reason: reason))
    }
    // Effects of calls that the model has made already are not left half done.
    if last.results.isEmpty {
      return .call(Array(last.reply.calls.prefix(limits.callsPerStepMax)))
    }
    if let stop { return .end(stop) }
    if steps.count >= limits.stepsMax { return .end(Ending(text: last.reply.text, reason: .steps)) }
    return .ask(turns, withTools: reasonToAnswer == nil)
  }

  /// Why the next turn of the model has to be its answer.
  private var reasonToAnswer: Reason? {
    if steps.count == limits.stepsMax - 1 { return .steps }
    if usage.totalTokens >= limits.tokensMax { return .tokens }
    return wrongCalls > limits.correctionsMax ? .answered : nil
  }

  /// What the model said so far, with the question.
  private var turns: [ChatTurn] {
    question
      + steps.flatMap { step -> [ChatTurn] in
        [.assistant(step.reply.text, calls: step.reply.calls)]
          + zip(step.reply.calls, step.results).map { .tool($1.text, callID: $0.id) }
      }
  }

  // MARK: What happened

  /// The model has spoken.
  ///
  /// Its calls get ids that are there and different, whatever the model wrote.
  mutating func said(_ reply: ChatReply) {
    var reply = reply
    if let reason = reasonToAnswer {
      // It was offered no tools.
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

  /// The tools have answered, in the order of the calls.
  ///
  /// Calls beyond the most that a step may make are answered here.
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

  /// A result, or a note in its place where the model has read as much as it may.
  private mutating func bounded(_ result: ToolResult) -> ToolResult {
    guard resultBytes + result.text.utf8.count <= limits.resultBytesMax else {
      var result = result
      result.text = #"{"error": "no room for more results; answer with what you have"}"#
      return result
    }
    resultBytes += result.text.utf8.count
    return result
  }

  /// The question has to end here, with what the model was saying; what it said last if nothing.
  mutating func stop(for reason: Reason, saying text: String = "") {
    let words = text.isEmpty ? steps.last?.reply.text ?? "" : text
    stop = stop ?? Ending(text: words, reason: reason)
  }
}

/// What a tool answered to a call.
struct ToolResult: Sendable, Hashable {
  /// What the model gets to read.
  var text: String
  /// Whether the call could not be made: no such tool, or wrong arguments.
  var isWrongCall = false
}
