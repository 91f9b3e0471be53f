import OpenAIStub
import Testing

@Suite("The stub of OpenAI's API")
struct StubStateTests {
  private func post(_ path: String, _ body: JSON, key: String? = "Bearer k") -> StubRequest {
    StubRequest(
      method: "POST",
      path: path,
      authorization: key,
      body: Array(body.serialized.utf8)
    )
  }

  private func embed(_ text: String) -> StubRequest {
    post("/v1/embeddings", ["model": "text-embedding-3-small", "input": .string(text)])
  }

  private func say(_ text: String, _ more: [String: JSON] = [:]) -> StubRequest {
    let body: [String: JSON] = [
      "model": "gpt-4o-mini", "messages": [["role": "user", "content": .string(text)]],
    ]
    return post("/v1/chat/completions", .object(body.merging(more) { $1 }))
  }

  private func body(_ response: StubResponse) -> JSON {
    JSON(parsing: response.pieces.flatMap { $0 }) ?? .null
  }

  private func code(_ response: StubResponse) -> String? { body(response)["error"]?["code"]?.text }

  private func content(_ response: StubResponse) -> String? {
    body(response)["choices"]?.items?.first?["message"]?["content"]?.text
  }

  @Test("A chat call without a scripted reply is an error")
  func unscripted() throws {
    var stub = StubState()
    #expect(code(stub.answer(say("hi"))) == "unscripted")
    try stub.add(StubScript(chat: [ScriptedReply(content: "hello")]))

    #expect(content(stub.answer(say("hi"))) == "hello")
    #expect(code(stub.answer(say("hi"))) == "unscripted")
  }

  @Test("A rule answers the user's words, and a tool's result only where it says so")
  func rules() throws {
    var stub = StubState()
    try stub.add(
      StubScript(
        chat: [ScriptedReply(content: "queued")],
        rules: [
          StubScript.Rule(contains: "Knee", reply: ScriptedReply(content: "first")),
          StubScript.Rule(
            contains: "knee",
            afterTool: true,
            reply: ScriptedReply(content: "second")
          ),
        ]
      )
    )
    let call: JSON = ["id": "c1", "type": "function", "function": ["name": "t", "arguments": ""]]
    let afterTool: JSON = [
      ["role": "user", "content": "my knee"], ["role": "assistant", "tool_calls": [call]],
      ["role": "tool", "tool_call_id": "c1", "content": "42"],
    ]

    #expect(content(stub.answer(say("My KNEE"))) == "first")
    #expect(content(stub.answer(say("", ["messages": afterTool]))) == "second")
    #expect(content(stub.answer(say("something else"))) == "queued")
    #expect(stub.repliesLeft == 0)
  }

  @Test("Faults come one after another, or at the call that they name, and then no more")
  func faults() throws {
    var stub = StubState()
    try stub.plan(StubFault(.embeddings, call: 4, status: 404))
    var other = StubState()
    try other.plan(StubFault(.embeddings, times: 2, status: 500))
    try other.plan(StubFault(.embeddings, status: 503))
    try other.plan(StubFault(.chat, status: 418))

    #expect((1...5).map { _ in stub.answer(embed("a")).status } == [200, 200, 200, 404, 200])
    #expect((1...4).map { _ in other.answer(embed("a")).status } == [500, 500, 503, 200])
    #expect(other.answer(say("hi")).status == 418)
  }

  @Test("A fault in place of an answer leaves the queue alone")
  func faultAndQueue() throws {
    var stub = StubState()
    try stub.add(StubScript(chat: [ScriptedReply(content: "hello")]))
    try stub.plan(StubFault(.chat, status: 500))

    #expect(stub.answer(say("hi")).status == 500)
    #expect(content(stub.answer(say("hi"))) == "hello")
  }

  @Test("Numbers that make no sense are refused, not acted upon")
  func senselessNumbers() {
    var stub = StubState()
    let faults = [
      StubFault(.chat, call: 0), StubFault(.chat, call: .max, times: .max),
      StubFault(.chat, status: 99), StubFault(.chat, delaySeconds: 1e300),
      StubFault(.chat, truncateAfter: -1),
    ]
    for fault in faults {
      #expect(throws: (any Error).self) { try stub.plan(fault) }
    }
    let scripts: [JSON] = [
      ["embeddings": ["dimension": -1]], ["embeddings": ["mode": "magic"]],
      ["chat": [["usage": ["prompt_tokens": 1e18]]]], ["chats": []], ["chat": [["text": "a"]]],
    ]
    for script in scripts { #expect(stub.answer(post("/stub/script", script)).status == 400) }
    #expect(stub.answer(post("/stub/faults", ["faults": [["route": "chats"]]])).status == 400)
    #expect(stub.answer(post("/stub/other", [:])).status == 404)
  }

  @Test("The journal forgets the oldest of too many requests")
  func journal() {
    var stub = StubState()
    for _ in 1...1005 { _ = stub.answer(say("hi")) }

    #expect(stub.journal.entries.count == 1000)
    #expect(stub.journal.dropped == 5)
    #expect(stub.journal.entries.first?.call == 6)
  }

  @Test("Without a key nothing is answered")
  func keys() {
    var stub = StubState()
    for field in [nil, "", "Bearer ", "Basic abc"] {
      var request = embed("a")
      request.authorization = field
      #expect(stub.answer(request).status == 401)
    }
  }

  @Test("Vectors have unit length, follow the seed, and share direction only with shared words")
  func vectors() {
    func similarity(_ left: [Float], _ right: [Float]) -> Float {
      zip(left, right).reduce(0) { $0 + $1.0 * $1.1 }
    }
    let hash = StubEmbedding()
    let words = StubEmbedding(mode: .words)
    for text in ["sore knee", "…", "a a"] {
      for embedding in [hash, words] {
        let vector = embedding.vector(of: text, dimension: 512)
        #expect(abs(similarity(vector, vector) - 1) < 1e-5)
      }
    }
    let knee = hash.vector(of: "sore knee", dimension: 512)
    #expect(knee == StubEmbedding(mode: .hash).vector(of: "sore knee", dimension: 512))
    #expect(knee != StubEmbedding(seed: 1).vector(of: "sore knee", dimension: 512))
    #expect(abs(similarity(knee, hash.vector(of: "sore knees", dimension: 512))) < 0.3)
    let wordy = words.vector(of: "my knee is sore", dimension: 512)
    #expect(similarity(wordy, words.vector(of: "Sore, my knee!", dimension: 512)) > 0.8)
    #expect(abs(similarity(wordy, words.vector(of: "oats", dimension: 512))) < 0.3)
  }

  @Test("A stream's events add up to the whole response")
  func stream() throws {
    let reply = ScriptedReply(
      content: "Knees 🏋️ need rest, always.",
      usage: ["prompt_tokens": 7, "completion_tokens": 9]
    )
    var stub = StubState()
    try stub.add(StubScript(chat: [reply]))
    let options: [String: JSON] = ["stream": true, "stream_options": ["include_usage": true]]
    let response = stub.answer(say("hi", options))
    let events = response.pieces.map {
      String(decoding: $0.dropFirst(6).dropLast(2), as: UTF8.self)
    }
    let chunks = events.dropLast().compactMap { JSON(parsing: $0) }
    let parts = chunks.compactMap {
      $0["choices"]?.items?.first?["delta"]?["content"]?.text
    }

    #expect(events.last == "[DONE]")
    #expect(chunks.count == events.count - 1)
    #expect(parts.joined() == reply.content)
    #expect(parts.count > 3)
    #expect(chunks.last?["usage"]?["total_tokens"] == 16)
    #expect(chunks.first?["usage"] == JSON.null)
  }
}
