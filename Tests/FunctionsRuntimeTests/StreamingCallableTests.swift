import FunctionsRuntime
import HTTPMessages
import HTTPTypes
import Identity
import Invocation
import NIOCore
import StatusCodes
import Synchronization
import Testing
import TestSupport

@Suite("Streaming callables", .timeLimit(.minutes(5)))
struct StreamingCallableTests {
  private struct Failure: Error {}

  private static let eventStream: HTTPFields = [
    .accept: "text/event-stream", .origin: "https://app.example",
  ]

  private func harness() throws -> HostHarness {
    try HostHarness {
      OnStreamingCall<String, _, String>("words") { request, stream in
        var wasSent = true
        for word in request.data.split(separator: " ") {
          wasSent = try await stream.send(String(word))
        }
        return "\(wasSent) \(request.wantsStream)"
      }
      OnStreamingCall<FirestoreValue, _, [UInt64]>("numbers") { _, stream in
        try await stream.send([1, 9_007_199_254_740_993, .max])
        return [UInt64.max]
      }
      OnStreamingCall<String, _, String>("breaks") { request, stream -> Bool in
        try await stream.send("one")
        guard let code = StatusCode(name: request.data) else { throw Failure() }
        throw CallableError(code, "as asked", details: ["line": "a\nb"])
      }
      OnStreamingCall<FirestoreValue, _, Double>("silent") { _, stream in
        await #expect(throws: ValueCodingError.self) { try await stream.send(.nan) }
      }
      OnCall<FirestoreValue, _>("plain") { $0.data }
      OnStreamingCall<FirestoreValue, _, Int>("users", callers: .users) { _, _ in 1 }
    }
  }

  @Test("Each chunk is one line and a blank one, the result the last")
  func frames() async throws {
    let reply = try await harness().call("words", #"{"data":"a b"}"#, headers: Self.eventStream)

    #expect(reply.status == 200)
    #expect(
      reply.body
        == "data: {\"message\":\"a\"}\n\ndata: {\"message\":\"b\"}\n\n"
        + "data: {\"result\":\"true true\"}\n\n"
    )
    #expect(reply.headers[.contentType] == "text/event-stream")
    #expect(reply.headers[.cacheControl] == "no-cache")
    #expect(reply.headers[fieldName("x-accel-buffering")] == "no")
    #expect(reply.headers[.accessControlAllowOrigin] == "https://app.example")
    #expect(reply.headers[.vary] == "Origin")
    #expect(reply.headers[.contentLength] == nil)
  }

  @Test(
    "Who does not ask for exactly an event stream gets JSON, and sending says so",
    arguments: [nil, "*/*", "application/json", "text/event-stream, */*", "Text/Event-Stream"]
  )
  func plain(accept: String?) async throws {
    var headers = HTTPFields()
    headers[.accept] = accept
    let reply = try await harness().call("words", #"{"data":"a"}"#, headers: headers)

    #expect(reply.body == #"{"result":"false false"}"#)
    #expect(reply.headers[.contentType] == "application/json; charset=utf-8")
  }

  @Test("A function that does not stream answers with one event")
  func notStreaming() async throws {
    let reply = try await harness().call("plain", #"{"data":[1]}"#, headers: Self.eventStream)

    #expect(reply.body == "data: {\"result\":[1]}\n\n")
  }

  @Test("Chunks have bare numbers of any size, the result the wrapped form")
  func numbers() async throws {
    let reply = try await harness().call("numbers", #"{"data":0}"#, headers: Self.eventStream)
    let events = reply.body.split(separator: "\n\n")

    #expect(events.first == #"data: {"message":[1,9007199254740993,18446744073709551615]}"#)
    let wrapped =
      #"{"@type":"type.googleapis.com/google.protobuf.UInt64Value","value":"18446744073709551615"}"#
    #expect(events.last == "data: {\"result\":[\(wrapped)]}")
  }

  @Test("A chunk that is not JSON is the handler's error, and the stream goes on")
  func badChunk() async throws {
    let reply = try await harness().call("silent", #"{"data":0}"#, headers: Self.eventStream)

    #expect(reply.body == "data: {\"result\":null}\n\n")
  }

  @Test("An error ends the stream with its event; text that clients must not see stays out")
  func errors() async throws {
    let harness = try harness()
    let reported = try await harness.call(
      "breaks",
      #"{"data":"ABORTED"}"#,
      headers: Self.eventStream
    )
    let hidden = try await harness.call("breaks", #"{"data":"x"}"#, headers: Self.eventStream)

    #expect(reported.status == 200)
    #expect(
      reported.body.split(separator: "\n\n").last
        == #"data: {"error":{"details":{"line":"a\nb"},"message":"as asked","status":"ABORTED"}}"#
    )
    #expect(
      hidden.body.split(separator: "\n\n").last
        == #"data: {"error":{"message":"INTERNAL","status":"INTERNAL"}}"#
    )
  }

  @Test("A refused caller receives an event, with status 200")
  func refusals() async throws {
    let harness = try harness()
    let replies = [
      try await harness.call("words", "{}", headers: Self.eventStream),
      try await harness.call("words", #"{"data":1}"#, headers: Self.eventStream),
      try await harness.call(
        "words",
        #"{"data":"a"}"#,
        authorization: "Bearer x",
        headers: Self.eventStream
      ),
      try await harness.call("users", #"{"data":1}"#, headers: Self.eventStream),
      try await harness.call("nobody", #"{"data":1}"#, headers: Self.eventStream),
    ]

    #expect(replies.map(\.status) == [200, 200, 200, 200, 200])
    for (reply, status) in zip(
      replies,
      [
        "INVALID_ARGUMENT", "INVALID_ARGUMENT", "UNAUTHENTICATED", "UNAUTHENTICATED", "NOT_FOUND",
      ]
    ) {
      #expect(reply.body.hasPrefix("data: {\"error\":{"))
      #expect(reply.body.hasSuffix("\"status\":\"\(status)\"}}\n\n"))
      #expect(reply.headers[.accessControlAllowOrigin] == "https://app.example")
    }
  }

  @Test(
    "A client that has gone stops the handler at its next chunk, and nothing is logged as error"
  )
  func gone() async throws {
    struct Broken: Error {}
    let sent = Mutex(0)
    let harness = try HostHarness {
      OnStreamingCall<FirestoreValue, _, Int>("endless") { _, stream -> Bool in
        while true {
          try await stream.send(1)
          sent.withLock { $0 += 1 }
        }
      }
    }
    var head = HTTPRequest(method: .post, scheme: nil, authority: nil, path: "/endless")
    head.headerFields = [.accept: "text/event-stream", .contentType: "application/json"]
    let reply = await harness.host.respond(to: head, body: ByteBuffer(string: #"{"data":0}"#))
    guard case .produced(let produce) = reply.body else {
      Issue.record("The reply is not streamed")
      return
    }
    let written = Mutex(0)
    try await produce { _ in
      let count = written.withLock { count in
        count += 1
        return count
      }
      if count == 3 { throw Broken() }
    }

    #expect(sent.withLock { $0 } == 2)
    #expect(written.withLock { $0 } == 3)
    #expect(harness.log.entries(atLeast: .error).isEmpty)
  }

  @Test("A declaration is called in a test, with a stream that collects or without one")
  func direct() async throws {
    let spell = OnStreamingCall<String, _, String>("spell") { request, stream in
      for character in request.data { try await stream.send(String(character)) }
      return request.data.count
    }
    let chunks = ChunkCollector<String>()

    #expect(try await spell.run(CallableRequest(data: "abc"), stream: chunks.stream) == 3)
    #expect(chunks.all == ["a", "b", "c"])
    #expect(try await spell.run(CallableRequest(data: "ab")) == 2)
  }

  @Test("A stream that outlives its call sends nothing")
  func outlived() async throws {
    let kept = Mutex<CallableStream<Int>?>(nil)
    let harness = try HostHarness {
      OnStreamingCall<FirestoreValue, _, Int>("keep") { _, stream in
        kept.withLock { $0 = stream }
      }
    }
    let reply = try await harness.call("keep", #"{"data":0}"#, headers: Self.eventStream)

    #expect(reply.body == "data: {\"result\":null}\n\n")
    let stream = try #require(kept.withLock { $0 })
    await #expect(throws: CancellationError.self) { try await stream.send(1) }
  }

  @Test("Out of time a stream ends also when its function ignores that", .timeLimit(.minutes(5)))
  func stubborn() async throws {
    let (ends, end) = AsyncStream.makeStream(of: Void.self)
    defer { end.finish() }
    let app = FunctionsApp {
      OnStreamingCall<FirestoreValue, _, Int>("stay") { _, stream in
        try await stream.send(1)
        // Ignores everything except the end of the test.
        await Task.detached { for await _ in ends {} }.value
      }
    }
    let host = try FunctionHost(
      app: app,
      requestTimeMax: .milliseconds(50),
      credentials: CredentialReader(mode: .production)
    )
    var head = HTTPRequest(method: .post, scheme: nil, authority: nil, path: "/stay")
    head.headerFields = [.accept: "text/event-stream", .contentType: "application/json"]
    let reply = await host.respond(to: head, body: ByteBuffer(string: #"{"data":0}"#))
    let text = String(buffer: try await reply.body.collect(upTo: 1 << 20))

    #expect(text.hasSuffix("\"status\":\"DEADLINE_EXCEEDED\"}}\n\n"))
  }

  @Test("Without a gateway, a stream that exceeds its time limit ends with an event")
  func deadline() async throws {
    let app = FunctionsApp {
      OnStreamingCall<FirestoreValue, _, Int>("hang") { _, stream in
        try await stream.send(1)
        try await Task.sleep(for: .seconds(3600))
      }
      OnRequest("site") { _ in
        .stream { _ in try await Task.sleep(for: .seconds(3600)) }
      }
    }
    let host = try FunctionHost(
      app: app,
      requestTimeMax: .milliseconds(1),
      credentials: CredentialReader(mode: .production)
    )
    var head = HTTPRequest(method: .post, scheme: nil, authority: nil, path: "/hang")
    head.headerFields = [.accept: "text/event-stream", .contentType: "application/json"]
    let called = await host.respond(to: head, body: ByteBuffer(string: #"{"data":0}"#))
    let text = String(buffer: try await called.body.collect(upTo: 1 << 20))

    #expect(text.hasSuffix("\"status\":\"DEADLINE_EXCEEDED\"}}\n\n"))
    head.path = "/site"
    let site = await host.respond(to: head, body: ByteBuffer())
    if case .produced = site.body {
      await #expect(throws: InvocationError.self) { _ = try await site.body.collect(upTo: 10) }
    } else {
      #expect(site.head.status.code == 504)
    }
  }
}
