import Testing

@testable import PsstBackend

@Suite("The assistant's loop")
struct AssistantLoopTests {
  private static let question: [ChatTurn] = [.system("Help."), .user("Who is injured?")]
  private static let search = ToolCall(id: "a", name: "searchMessages", arguments: "{}")

  @Test("An answer without calls ends the loop")
  func answer() {
    var loop = AssistantLoop(Self.question)
    #expect(loop.next == .ask(Self.question, withTools: true))
    loop.said(ChatReply(text: "Carl is.", usage: TokenUsage(promptTokens: 5)))
    #expect(loop.next == .end(.init(text: "Carl is.", reason: .answered)))
    #expect(loop.usage.totalTokens == 5)
  }

  @Test("Calls are made, and the model gets their results in their order")
  func calls() {
    var loop = AssistantLoop(Self.question)
    let other = ToolCall(id: "b", name: "setReminder", arguments: "{}")
    loop.said(ChatReply(text: "Let me see.", calls: [Self.search, other]))
    #expect(loop.next == .call([Self.search, other]))
    loop.answered([ToolResult(text: "1"), ToolResult(text: "2")])
    let turns =
      Self.question + [
        .assistant("Let me see.", calls: [Self.search, other]), .tool("1", callID: "a"),
        .tool("2", callID: "b"),
      ]
    #expect(loop.next == .ask(turns, withTools: true))
  }

  @Test("A model that only calls tools is asked a last time without them")
  func endless() {
    var loop = AssistantLoop(Self.question, limits: .init(stepsMax: 3))
    var asked: [Bool] = []
    while case .ask(_, let withTools) = loop.next {
      asked.append(withTools)
      loop.said(ChatReply(calls: [Self.search]))
      guard case .call(let calls) = loop.next else { break }
      loop.answered(calls.map { _ in ToolResult(text: "nothing") })
    }
    #expect(asked == [true, true, false])
    #expect(loop.next == .end(.init(text: "", reason: .steps)))
  }

  @Test("A question that has used its tokens has to be answered")
  func tokens() {
    var loop = AssistantLoop(Self.question, limits: .init(tokensMax: 100))
    loop.said(ChatReply(calls: [Self.search], usage: TokenUsage(promptTokens: 100)))
    loop.answered([ToolResult(text: "nothing")])
    guard case .ask(_, withTools: false) = loop.next else {
      Issue.record("\(loop.next)")
      return
    }
  }

  @Test("A wrong call may be corrected once; after that the model has to answer")
  func wrongCalls() {
    var loop = AssistantLoop(Self.question)
    for withTools in [true, false] {
      loop.said(ChatReply(calls: [Self.search]))
      loop.answered([ToolResult(text: "no such tool", isWrongCall: true)])
      guard case .ask(_, withTools) = loop.next else {
        Issue.record("\(loop.next)")
        return
      }
    }
  }

  @Test("Of twenty calls at once the first eight are made, and each has a result")
  func manyCalls() {
    var loop = AssistantLoop(Self.question)
    let calls = (0..<20).map { ToolCall(id: "c\($0)", name: "searchMessages", arguments: "{}") }
    loop.said(ChatReply(calls: calls))
    #expect(loop.next == .call(Array(calls.prefix(8))))
    loop.answered(Array(repeating: ToolResult(text: "nothing"), count: 8))
    guard case .ask(let turns, _) = loop.next else {
      Issue.record("\(loop.next)")
      return
    }
    let results = turns.compactMap { if case .tool(_, let id) = $0 { id } else { nil } }
    #expect(results == calls.map(\.id))
  }

  @Test("Calls without ids, or with the same one, get ids of their own")
  func ids() {
    var loop = AssistantLoop(Self.question)
    let same = ToolCall(id: "a", name: "x", arguments: "{}")
    loop.said(ChatReply(calls: [same, same, ToolCall(id: "", name: "x", arguments: "{}")]))
    guard case .call(let calls) = loop.next else {
      Issue.record("\(loop.next)")
      return
    }
    #expect(Set(calls.map(\.id)).count == 3 && !calls.contains { $0.id.isEmpty })
  }

  @Test("Results beyond a question's size limit are withheld, and the model is informed")
  func results() {
    var loop = AssistantLoop(Self.question, limits: .init(resultBytesMax: 10))
    let calls = (0..<3).map { ToolCall(id: "c\($0)", name: "searchMessages", arguments: "{}") }
    loop.said(ChatReply(calls: calls))
    loop.answered([
      ToolResult(text: "1234567890"), ToolResult(text: "x", isWrongCall: true),
      ToolResult(text: ""),
    ])
    #expect(loop.steps[0].results.map(\.text.count) == [10, 64, 0])
    #expect(loop.steps[0].results[1].text.contains("no room"))
  }

  @Test("An answer that is as long as it may be says that it is cut off")
  func cutOff() {
    var loop = AssistantLoop(Self.question)
    loop.said(ChatReply(text: "Carl is, and", isCutOff: true))
    guard case .end(let ending) = loop.next else {
      Issue.record("\(loop.next)")
      return
    }
    #expect(ending.reason == .cutOff && ending.limitation?.contains("cut off") == true)
  }

  @Test("What the model was saying when it was stopped is the answer, or else what it said last")
  func stopSaying() {
    var loop = AssistantLoop(Self.question)
    loop.said(ChatReply(text: "Let me see.", calls: [Self.search]))
    loop.answered([ToolResult(text: "done")])
    var other = loop
    loop.stop(for: .time, saying: "Carl")
    other.stop(for: .unavailable)
    loop.stop(for: .spending, saying: "Too late")
    #expect(loop.next == .end(.init(text: "Carl", reason: .time)))
    #expect(other.next == .end(.init(text: "Let me see.", reason: .unavailable)))
  }

  @Test(
    "A stop ends the loop with what was said, but not between a call and its result",
    arguments: [AssistantLoop.Reason.time, .spending]
  )
  func stop(reason: AssistantLoop.Reason) {
    var loop = AssistantLoop(Self.question)
    loop.said(ChatReply(text: "Let me see.", calls: [Self.search]))
    loop.stop(for: reason)
    #expect(loop.next == .call([Self.search]))
    loop.answered([ToolResult(text: "done")])
    #expect(loop.next == .end(.init(text: "Let me see.", reason: reason)))
  }
}
