import HTTPMessages
import HTTPSupport
import HTTPTypes
import Logging
import NIOCore
import StatusCodes
import Synchronization
import Testing
import TestSupport

@testable import WebChannel

@Suite("Sessions of WebChannels", .timeLimit(.minutes(5)))
struct WebChannelsTests {
  /// A client of channels without a socket.
  struct Page: Sendable {
    let channels: WebChannels
    let handler: @Sendable (WebChannelStream) async throws -> Void

    func request(
      _ method: HTTPRequest.Method,
      _ query: String,
      _ body: String = ""
    ) async -> Response {
      let head = HTTPRequest(method: method, scheme: "http", authority: "h", path: "/c?\(query)")
      return await channels.respond(
        to: Request(head: head, body: .whole(ByteBuffer(string: body))),
        handler: handler
      )
    }

    /// Opens a session with messages and returns its ID.
    func open(_ messages: String...) async throws -> String {
      let opening = try await text(request(.post, "VER=8&RID=1", Self.form(messages, from: 0)))
      let start = try #require(opening.firstRange(of: #"[[0,["c",""#))
      return String(opening[start.upperBound...].prefix { $0 != "\"" })
    }

    /// Returns once the session has ended.
    func untilOver(_ id: String) async {
      await eventually("session \(id) is over") {
        await request(.post, "SID=\(id)&RID=9", "count=0").status != .ok
      }
    }

    func text(_ response: Response) async throws -> String {
      #expect(response.status == .ok)
      return String(buffer: try await response.body.collect(upTo: 1 << 20))
    }

    static func form(_ messages: [String], from offset: Int) -> String {
      let parts = messages.enumerated().map { "req\($0)___data__=\($1)" }
      return (["count=\(messages.count)", "ofs=\(offset)"] + parts).joined(separator: "&")
    }
  }

  @Test("Messages go to the handler and back, an error is the last one, and the session ends")
  func exchange() async throws {
    let channels = WebChannels()
    let page = Page(channels: channels) { stream in
      #expect(stream.headers[.authorization] == "Bearer a b")
      #expect(stream.parameters["database"] == "d")
      #expect(try await stream.next() == #"{"a":"+ %"}"#)
      try await stream.send { #"{"b":1}"# }
      #expect(try await stream.next() == "second")
      throw StatusError(.notFound, "No \"such\" thing")
    }
    let opening = await page.request(
      .post,
      "VER=8&RID=1&database=d",
      "count=1&ofs=0&req0___data__=%7B%22a%22%3A%22%2B+%25%22%7D"
        + "&headers=Authorization%3ABearer+a+b%0D%0AContent-Type%3Atext%2Fplain%0D%0A"
    )
    let text = try await page.text(opening)
    let id = String(text.split(separator: "\"")[3])
    let back = await page.request(.get, "SID=\(id)&RID=rpc&AID=0&CI=0")
    async let all = page.text(back)
    let report = await page.request(.post, "SID=\(id)&RID=2&AID=0", Page.form(["second"], from: 1))
    #expect(try await page.text(report).split(separator: "\n").count == 2)
    let sent = try await all
    #expect(sent.contains(#",[{"b":1}]]"#))
    let end = try #require(sent.firstRange(of: #",["close"]]"#))
    #expect(
      sent[..<end.lowerBound].contains(
        #",[{"error":{"code":404,"message":"No \"such\" thing","status":"NOT_FOUND"}}]]"#
      )
    )
    // The acknowledgement of the last array ends the session.
    let last = sent[..<end.lowerBound].split(separator: "[").last ?? ""
    _ = await page.request(.post, "SID=\(id)&RID=3&AID=\(last)", "count=0")
    await page.untilOver(id)
  }

  @Test(
    "A client that acknowledges nothing holds up its handler, and no more than the bound is kept"
  )
  func slowClient() async throws {
    let sent = Mutex(0)
    let (full, continuation) = AsyncStream<Void>.makeStream()
    let channels = WebChannels(configuration: .init(heldLengthMax: 100, heldLengthMin: 0))
    let page = Page(channels: channels) { stream in
      for number in 0..<1000 {
        if number == 13 { continuation.yield() }
        try await stream.send { "{}" }
        sent.withLock { $0 += 1 }
      }
    }
    let id = try await page.open("m")
    // Arrays have 8 or 9 units, so with the thirteenth more than 100 units are held.
    _ = await full.first { _ in true }
    #expect(sent.withLock { $0 } == 13)

    let polled = try await page.text(await page.request(.get, "SID=\(id)&RID=rpc&AID=0&CI=1"))
    #expect(polled.hasSuffix("[13,[{}]]]"))
    // The response may start with a keepalive, before the handler has continued.
    var after = 13
    var next = ""
    while !next.contains("{}") {
      next = try await page.text(await page.request(.get, "SID=\(id)&RID=rpc&AID=\(after)&CI=1"))
      after += 1
    }
    #expect(sent.withLock { $0 } > 13)
    channels.endAll()
    await page.untilOver(id)
  }

  @Test("What a page does not acknowledge is counted until it does, or its session is over")
  func counted() async throws {
    let budget = TransferBudget(
      bytesMax: 1000,
      // A long stall limit, so that a slow test does not cost a session its memory.
      stallMin: .seconds(3600),
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    )
    let channels = WebChannels(configuration: .init(heldLengthMin: 1), budget: budget)
    let page = Page(channels: channels) { stream in
      let text = try await stream.next()
      let length = Int(text.filter(\.isNumber)) ?? 0
      try await stream.send { String(repeating: "1", count: length) }
      _ = try await stream.next()
    }
    let id = try await page.open("700")
    await eventually("the message is held") { budget.heldBytes >= 700 }
    // There is no memory for a second session.
    let other = try await page.open("400")
    await page.untilOver(other)
    #expect((700..<800).contains(budget.heldBytes))

    _ = await page.request(.post, "SID=\(id)&RID=3&AID=1", "count=0")
    #expect(budget.heldBytes == 0)
    _ = try await page.open("700")
    await eventually("the message is held") { budget.heldBytes >= 700 }
    channels.endAll()
    #expect(budget.heldBytes == 0)
  }

  @Test("When all clients together hold too much, each still gets its share")
  func manySlowClients() async throws {
    let made = Mutex(0)
    let (news, continuation) = AsyncStream<Void>.makeStream()
    let channels = WebChannels(configuration: .init(heldLengthOfAllMax: 20, heldLengthMin: 1))
    let page = Page(channels: channels) { stream in
      while true {
        try await stream.send {
          made.withLock { $0 += 1 }
          continuation.yield()
          return "0123456789"
        }
      }
    }
    var iterator = news.makeAsyncIterator()
    let first = try await page.open("m")
    // Two messages of 16 units exceed the limit; one does not, so the second was still created.
    for _ in 0..<2 { await iterator.next() }
    let second = try await page.open("m")
    await iterator.next()
    for id in [first, second] {
      let sent = try await page.text(await page.request(.get, "SID=\(id)&RID=rpc&AID=0&CI=1"))
      #expect(sent.contains("[1,[0123456789]]"))
    }
    #expect(made.withLock { $0 } == 3)
    _ = await page.request(.post, "SID=\(second)&RID=2&AID=1", "count=0")
    await iterator.next()
    #expect(made.withLock { $0 } == 4)
    channels.endAll()
  }

  @Test(
    "A back channel ends when its handler waits for the acknowledgement that the next one brings"
  )
  func renewal() async throws {
    let channels = WebChannels(configuration: .init(heldLengthMax: 30, heldLengthMin: 0))
    let page = Page(channels: channels) { stream in
      while true { try await stream.send { "0123456789" } }
    }
    let id = try await page.open("m")
    var last = 0
    for _ in 0..<20 {
      let query = "SID=\(id)&RID=rpc&AID=\(last)&CI=0"
      let sent = try await page.text(await page.request(.get, query))
      let numbers = sent.matches(of: /\[(\d+),\[/).compactMap { Int($0.1) }
      #expect(numbers == Array(last + 1...last + numbers.count))
      last += numbers.count
    }
    #expect(last >= 20)
    channels.endAll()
  }

  @Test("A back channel that has nothing to do ends, too, when its handler begins to wait")
  func renewalOfAnIdleChannel() async throws {
    let (gate, open) = AsyncStream<Void>.makeStream()
    // The manual clock sends no keepalive that could end the back channel.
    let channels = WebChannels(
      configuration: .init(heldLengthMax: 10, heldLengthMin: 0),
      clock: ManualClock()
    )
    let page = Page(channels: channels) { stream in
      try await stream.send { "0123456789" }
      _ = await gate.first { _ in true }
      try await stream.send { "9876543210" }
    }
    let id = try await page.open("m")
    let back = await page.request(.get, "SID=\(id)&RID=rpc&AID=0&CI=0")
    guard case .produced(let produce) = back.body else {
      Issue.record("the back channel is no stream")
      return
    }
    try await produce { piece in
      guard String(buffer: piece).contains("0123456789") else { return }
      Task {
        // Gives the channel time to wait for more; a client sees no event of that.
        for _ in 0..<100 { await Task.yield() }
        open.yield()
      }
    }
    channels.endAll()
  }

  @Test("A second back channel ends the first one")
  func secondBackChannel() async throws {
    let channels = WebChannels()
    let page = Page(channels: channels) { stream in while true { _ = try await stream.next() } }
    let id = try await page.open("m")
    let (opened, continuation) = AsyncStream<Void>.makeStream()
    guard case .produced(let first) = await page.request(.get, "SID=\(id)&RID=rpc&AID=0").body,
      case .produced(let second) = await page.request(.get, "SID=\(id)&RID=rpc&AID=0").body
    else {
      Issue.record("a back channel is no stream")
      return
    }
    async let whole: Void = first { _ in continuation.yield() }
    _ = await opened.first { _ in true }
    let later = Task { try await second { _ in } }
    try await whole
    channels.endAll()
    try await later.value
  }

  @Test("When there is no room for a session, the one idle for longest ends")
  func idlestEnds() async throws {
    let (started, start) = AsyncStream<Void>.makeStream()
    let (ended, end) = AsyncStream<String>.makeStream()
    let channels = WebChannels(configuration: .init(sessionsMax: 2))
    let page = Page(channels: channels) { stream in
      let name = try await stream.next()
      defer { end.yield(name) }
      start.yield()
      _ = try await stream.next()
    }
    var starts = started.makeAsyncIterator()
    var ends = ended.makeAsyncIterator()
    func status(_ id: String) async -> HTTPResponse.Status {
      await page.request(.post, "SID=\(id)&RID=2", "count=0").status
    }

    let listening = try await page.open("listening")
    _ = await starts.next()
    let (opened, opening) = AsyncStream<Void>.makeStream()
    guard
      case .produced(let back) = await page.request(.get, "SID=\(listening)&RID=rpc&AID=0").body
    else {
      Issue.record("a back channel is no stream")
      return
    }
    async let whole: Void = back { _ in opening.yield() }
    _ = await opened.first { _ in true }
    let silent = try await page.open("silent")
    _ = await starts.next()
    _ = try await page.open("second")
    _ = await starts.next()
    #expect(await ends.next() == "silent")
    #expect(await status(silent) == .badRequest)
    let third = try await page.open("third")
    #expect(await ends.next() == "second")

    #expect(await status(listening) == .ok)
    #expect(await status(third) == .ok)
    channels.endAll()
    try await whole
  }

  @Test("What a client gives up while its handler is busy is not taken")
  func givenUp() async throws {
    let (gate, continuation) = AsyncStream<Void>.makeStream()
    let (taken, takenContinuation) = AsyncStream<String>.makeStream()
    let channels = WebChannels(configuration: .init(waitingBytesMax: 10))
    let page = Page(channels: channels) { stream in
      _ = await gate.first { _ in true }
      while true { takenContinuation.yield(try await stream.next()) }
    }
    let id = try await page.open("0123456789ab")
    let left = Task {
      await page.request(.post, "SID=\(id)&RID=2", Page.form(["left"], from: 1)).status
    }
    // Gives a wrong server time to accept the message; no event shows that it stays outside.
    for _ in 0..<100 { await Task.yield() }
    left.cancel()
    #expect(await left.value == .badRequest)
    continuation.yield()
    _ = await page.request(.post, "SID=\(id)&RID=3", Page.form(["stayed"], from: 1))
    var iterator = taken.makeAsyncIterator()
    #expect(await iterator.next() == "0123456789ab")
    #expect(await iterator.next() == "stayed")
    channels.endAll()
  }

  @Test("An opening with messages out of place is refused and displaces no session")
  func openingAhead() async throws {
    let channels = WebChannels(configuration: .init(sessionsMax: 1))
    let page = Page(channels: channels) { stream in while true { _ = try await stream.next() } }
    let id = try await page.open("m")
    let ahead = await page.request(.post, "VER=8", Page.form(["m"], from: 5000))
    #expect(ahead.status == .badRequest)
    #expect(await page.request(.post, "SID=\(id)&RID=2", "count=0").status == .ok)
    channels.endAll()
  }

  @Test("A list of header fields has bounds, and names that HTTP forbids are left out")
  func headers() async throws {
    let channels = WebChannels()
    let page = Page(channels: channels) { stream in
      let sent = stream.headers.map { "\($0.name)=\($0.value)" }.joined(separator: " ")
      try await stream.send { "\"\(sent)\"" }
    }
    let many = (0...100).map { "n\($0):v%0D%0A" }.joined()
    let long = "n:" + String(repeating: "v", count: 64 << 10)
    for list in [many, long] {
      #expect(await page.request(.post, "VER=8", "headers=\(list)").status == .badRequest)
      let query = "VER=8&$httpHeaders=\(list)"
      #expect(await page.request(.post, query).status == .badRequest)
    }
    let list = "A:1%0D%0Aa b:2%0D%0A:authority:3%0D%0AB: 4%00%0D%0Aa:5"
    let opened = await page.request(.post, "VER=8", "headers=\(list)")
    let id = String(try await page.text(opened).split(separator: "\"")[3])
    let sent = try await page.text(await page.request(.get, "SID=\(id)&RID=rpc&AID=0"))
    #expect(sent.contains(#""A=5""#) || sent.contains(#""a=5""#))
    channels.endAll()
  }

  @Test("A handler that reads nothing delays its own client and no other")
  func slowHandler() async throws {
    let (gate, continuation) = AsyncStream<Void>.makeStream()
    let channels = WebChannels(configuration: .init(waitingBytesMax: 10))
    let page = Page(channels: channels) { stream in
      guard try await stream.next() == "slow" else { return }
      _ = await gate.first { _ in true }
      while true { _ = try await stream.next() }
    }
    let id = try await page.open("slow")
    async let held = page.text(
      await page.request(.post, "SID=\(id)&RID=2&AID=0", Page.form(["0123456789ab"], from: 1))
    )
    let other = try await page.open("quick")
    #expect(
      try await page.text(await page.request(.get, "SID=\(other)&RID=rpc&AID=0")).contains("close")
    )
    continuation.yield()
    #expect(try await held.hasSuffix("[0,0,0]"))
    channels.endAll()
  }

  @Test("A session without a back channel is over after its time, and its handler cancelled")
  func abandonment() async throws {
    let clock = ManualClock()
    let (ended, continuation) = AsyncStream<Bool>.makeStream()
    let channels = WebChannels(clock: clock)
    let page = Page(channels: channels) { stream in
      defer { continuation.yield(Task.isCancelled) }
      _ = try await stream.next()
      _ = try await stream.next()
    }
    let id = try await page.open("m")
    await clock.waitForSleepers()
    clock.advance(by: .seconds(60))
    #expect(await ended.first { _ in true } == true)
    await page.untilOver(id)
  }

  @Test("An open back channel says something every 25 seconds, and keeps its session")
  func silence() async throws {
    let clock = ManualClock()
    let channels = WebChannels(clock: clock)
    let page = Page(channels: channels) { stream in
      _ = try await stream.next()
      _ = try await stream.next()
    }
    let id = try await page.open("m")
    let (pieces, continuation) = AsyncStream<String>.makeStream()
    let back = await page.request(.get, "SID=\(id)&RID=rpc&AID=0&CI=0")
    guard case .produced(let produce) = back.body else {
      Issue.record("the back channel is no stream")
      return
    }
    async let whole: Void = produce { continuation.yield(String(buffer: $0)) }
    var iterator = pieces.makeAsyncIterator()
    for number in 1...20 {
      #expect(await iterator.next()?.hasSuffix("[[\(number),[\"noop\"]]]") == true)
      // The sleepers of the session and of the back channel.
      await clock.waitForSleepers(2)
      clock.advance(by: .seconds(25))
    }
    #expect(await page.request(.post, "SID=\(id)&RID=2", "count=0").status == .ok)
    channels.endAll()
    try await whole
  }

  @Test("Requests that no client makes are refused with 400, and the server lives on")
  func malformed() async throws {
    let channels = WebChannels(configuration: .init(sessionsMax: 1))
    let page = Page(channels: channels) { stream in while true { _ = try await stream.next() } }
    let id = try await page.open("m")
    let requests: [(HTTPRequest.Method, String, String)] = [
      (.get, "", ""), (.post, "", "count=1"), (.post, "VER=7", ""), (.put, "SID=\(id)", ""),
      (.post, "VER=8", "count=-1"),
      (.post, "VER=8", "count=1001"), (.post, "VER=8", "ofs=x"),
      (.get, "SID=\(id)", ""), (.get, "SID=\(id)&RID=rpc&AID=x", ""),
      (.get, "SID=\(id)&RID=rpc&TO=0", ""), (.post, "SID=\(id)&AID=-1", ""),
      (.post, "SID=\(id)", "count=1&ofs=5000&req0___data__=m"), (.post, "SID=nobody", ""),
      (.post, "SID=\(id)", "count=2&ofs=1&req0___data__=m"),
      (.post, "SID=\(id)", String(repeating: "a&", count: 2000)),
    ]
    for (method, query, body) in requests {
      let response = await page.request(method, query, body)
      #expect(response.status == .badRequest, "\(method) \(query) \(body)")
    }
    let unknown = await page.request(.post, "SID=nobody", "")
    #expect(String(buffer: try await unknown.body.collect(upTo: 1000)).contains("Unknown SID"))
    #expect(await page.request(.get, "SID=\(id)&TYPE=terminate").status == .ok)
    await page.untilOver(id)
    _ = try await page.open("m")
    channels.endAll()
  }
}
