import OutboundHTTP
@testable import PsstBackend
import TestSupport
import Testing

@Suite("Silence of a model", .timeLimit(.minutes(5)))
struct SilenceLimitTests {
  private let clock = ManualClock()
  private var limit: SilenceLimit { SilenceLimit(longest: .seconds(60), clock: clock) }

  /// Says something whenever it is told to.
  private struct Speaker: Sendable {
    let words = AsyncStream<Void>.makeStream()
    let heards = AsyncStream<Void>.makeStream()

    func speak(_ limit: SilenceLimit) async throws {
      try await limit.watch { heard in
        for await _ in words.stream {
          heard()
          heards.continuation.yield()
        }
        try Task.checkCancellation()
      }
    }
  }

  @Test("What goes on may take any time")
  func goesOn() async throws {
    let speaker = Speaker()
    async let end: Void = speaker.speak(limit)
    var heards = speaker.heards.stream.makeAsyncIterator()
    for _ in 0..<40 {
      speaker.words.continuation.yield()
      await heards.next()
      // Almost the longest silence.
      for _ in 0..<3 {
        await clock.waitForSleepers()
        clock.advance(by: .seconds(15))
      }
    }
    speaker.words.continuation.finish()

    try await end
    #expect(clock.now.offset == .seconds(1800))
  }

  @Test("A silence that is too long ends it, also after it has begun", arguments: [true, false])
  func silent(begins: Bool) async throws {
    let speaker = Speaker()
    let limit = limit
    let end = Task { try await speaker.speak(limit) }
    if begins {
      speaker.words.continuation.yield()
      for await _ in speaker.heards.stream { break }
    }
    for _ in 0..<(begins ? 5 : 4) {
      await clock.waitForSleepers()
      clock.advance(by: .seconds(15))
    }

    let error = await #expect(throws: SilenceLimit.SilenceError.self) { try await end.value }
    #expect(error?.seconds == 60)
  }

  @Test("A provider that says nothing is down for the next callers, one whose caller leaves is not")
  func provider() async throws {
    // It takes requests and never answers; a request ends with its task.
    let server = ScriptedHTTP { _ in
      for await _ in AsyncStream<Never>.makeStream().stream {}
      throw OutboundHTTPError(.cancelled, "the request was cancelled")
    }
    let chat = OpenAIChat(
      model: "m",
      baseURL: "http://mute.test",
      key: nil,
      http: server,
      retries: ServiceRetries(attemptsMax: 1),
      clock: clock
    )
    let ask: @Sendable () async throws -> ChatReply = {
      try await chat.reply(to: [.user("Hi")], []) { _ in }
    }
    for _ in 0..<3 {
      let caller = Task { try await ask() }
      await clock.waitForSleepers()
      caller.cancel()
      await #expect(throws: CancellationError.self) { try await caller.value }
    }
    try chat.check()
    for _ in 0..<3 {
      let caller = Task { try await ask() }
      for _ in 0..<4 {
        await clock.waitForSleepers()
        clock.advance(by: .seconds(15))
      }
      let error = await #expect(throws: ServiceError.self) { try await caller.value }
      #expect(error?.kind == .unavailable)
      #expect(error?.message == "the chat provider said nothing for 60 s")
    }

    #expect(throws: ServiceError.self) { try chat.check() }
    #expect(server.requests.allSatisfy { $0.timeout == nil })
  }
}

@Suite("Pieces on their way to a listener")
struct TextDeltasTests {
  @Test("A listener who is slow gets all of it in order, in few pieces")
  func slow() async throws {
    let spoken = TextDeltas()
    let all = (0..<10_000).map { "\($0) " }
    for piece in all { spoken.add(piece) }
    spoken.end()
    var heard: [String] = []
    try await spoken.handOver { heard.append($0) }

    #expect(heard.joined() == all.joined())
    #expect(heard.count == 64 && heard.first == "0 ")
  }

  @Test("A listener who keeps up gets each piece by itself")
  func keepsUp() async throws {
    let spoken = TextDeltas()
    var count = 0
    spoken.add("0")
    try await spoken.handOver { piece in
      #expect(piece == "\(count)")
      count += 1
      if count < 1000 { spoken.add("\(count)") } else { spoken.end() }
    }
    #expect(count == 1000)
  }
}
