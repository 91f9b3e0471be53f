import FunctionsRuntime
import HTTPSupport
import Identity
import Logging
import Testing
import TestSupport

@Suite("Worker's server", .timeLimit(.minutes(5)))
struct WorkerServerTests {
  private func withServer<Result: Sendable>(
    _ app: FunctionsApp,
    _ body: @Sendable (ServerAddress) async throws -> Result
  ) async throws -> Result {
    let host = try FunctionHost(
      app: app,
      credentials: CredentialReader(mode: .emulator),
      makeLogger: { _ in .silent }
    )
    let listening = AsyncStream<ServerAddress>.makeStream()
    let service = WorkerServer.service(
      host: host,
      address: .tcp(host: "127.0.0.1", port: 0),
      logger: .silent
    ) { listening.continuation.yield($0) }
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await service.run() }
      defer { group.cancelAll() }
      var addresses = listening.stream.makeAsyncIterator()
      return try await body(try #require(await addresses.next()))
    }
  }

  @Test("Calls of one connection are answered one after the other; health and manifest are there")
  func calls() async throws {
    let app = FunctionsApp {
      OnCall<FirestoreValue, _>("echo") { $0.data }
    }
    try await withServer(app) { address in
      try await RawClient.with(address) { client in
        for number in 1...3 {
          try await client.send("echo", #"{"data":\#(number)}"#)
          let reply = try await client.receive(until: "}")

          #expect(reply.hasPrefix("HTTP/1.1 200 OK\r\n"))
          #expect(reply.hasSuffix(#"{"result":\#(number)}"#))
        }
        try await client.send(raw: "GET /__/health HTTP/1.1\r\nhost: x\r\n\r\n")
        #expect(try await client.receive(until: "ok\n").hasPrefix("HTTP/1.1 200"))
        try await client.send(raw: "GET /__/functions.yaml HTTP/1.1\r\nhost: x\r\n\r\n")
        let manifest = try await client.receive(until: "v1alpha1")
        #expect(manifest.contains("text/yaml"))
        #expect(manifest.contains(#""entryPoint" : "echo""#))
      }
    }
  }

  @Test("A body over 10 MiB is 413 in the form of callables, before it has been sent")
  func tooLarge() async throws {
    let app = FunctionsApp { OnCall<FirestoreValue, _>("echo") { $0.data } }
    try await withServer(app) { address in
      try await RawClient.with(address) { client in
        try await client.send(
          raw: "POST /echo HTTP/1.1\r\nhost: x\r\norigin: http://a.example\r\n"
            + "content-type: application/json\r\ncontent-length: 10485761\r\n\r\n"
        )
        let reply = try await client.receive(until: "}}")

        #expect(reply.hasPrefix("HTTP/1.1 413"))
        #expect(
          reply.contains("access-control-allow-origin: http://a.example")
            || reply.contains("Access-Control-Allow-Origin: http://a.example")
        )
        #expect(reply.contains(#""status":"INVALID_ARGUMENT""#))
      }
    }
  }

  @Test("A client that goes away cancels its function", .timeLimit(.minutes(5)))
  func disconnect() async throws {
    let begun = AsyncStream<Void>.makeStream()
    let cancelled = AsyncStream<Void>.makeStream()
    let app = FunctionsApp {
      OnCall<FirestoreValue, _>("hang") { _ in
        begun.continuation.yield()
        defer { cancelled.continuation.yield() }
        try await Task.sleep(for: .seconds(3600))
      }
      OnCall<FirestoreValue, _>("echo") { $0.data }
    }
    try await withServer(app) { address in
      var beginnings = begun.stream.makeAsyncIterator()
      var ends = cancelled.stream.makeAsyncIterator()
      // On a new connection and on one that has already served a call.
      for callsBefore in 0...1 {
        try await RawClient.with(address) { client in
          for _ in 0..<callsBefore {
            try await client.send("echo", #"{"data":1}"#)
            _ = try await client.receive(until: "}")
          }
          try await client.send("hang", #"{"data":1}"#)
          await beginnings.next()
        }
        await ends.next()
      }
    }
  }

  @Test("Chunks go out as they are sent; a client that leaves between two cancels the function")
  func streams() async throws {
    let next = AsyncStream<Void>.makeStream()
    let cancelled = AsyncStream<Void>.makeStream()
    let app = FunctionsApp {
      OnStreamingCall<FirestoreValue, _, Int>("count") { _, stream in
        defer { cancelled.continuation.yield() }
        var number = 0
        for await _ in next.stream {
          number += 1
          try await stream.send(number)
        }
      }
    }
    try await withServer(app) { address in
      try await RawClient.with(address) { client in
        try await client.send(
          raw: "POST /count HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            + "accept: text/event-stream\r\ncontent-length: 10\r\n\r\n{\"data\":1}"
        )
        for number in 1...2 {
          next.continuation.yield()
          let received = try await client.receive(until: "\n\n\r\n")
          #expect(received.contains("data: {\"message\":\(number)}\n\n"))
        }
      }
      var ends = cancelled.stream.makeAsyncIterator()
      await ends.next()
    }
  }

  @Test("An HTTP function answers while its request still arrives; the connection serves on")
  func echoes() async throws {
    let app = FunctionsApp {
      OnRequest("echo") { request in
        .stream { writer in
          for try await bytes in request.body { try await writer.write(bytes) }
        }
      }
      OnRequest("early") { _ in .text("early") }
    }
    try await withServer(app) { address in
      try await RawClient.with(address) { client in
        for _ in 0..<2 {
          try await client.send(
            raw: "PUT /echo/x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
          )
          for text in ["one", "two"] {
            try await client.send(raw: "3\r\n\(text)\r\n")
            #expect(try await client.receive(until: text).contains(text))
          }
          try await client.send(raw: "0\r\n\r\n")
          #expect(try await client.receive(until: "0\r\n\r\n").hasSuffix("0\r\n\r\n"))

          // This function does not read its body, which arrives after the response.
          try await client.send(
            raw: "PUT /early HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
          )
          #expect(try await client.receive(until: "early").contains("200 OK"))
          try await client.send(raw: "3\r\nabc\r\n0\r\n\r\n")
        }
      }
    }
  }

  @Test("A part of an upload is never taken for the whole")
  func cutUpload() async throws {
    let outcomes = AsyncStream<String>.makeStream()
    let app = FunctionsApp {
      OnRequest("count") { request in
        do {
          for try await _ in request.body { outcomes.continuation.yield("piece") }
          outcomes.continuation.yield("whole")
        } catch {
          outcomes.continuation.yield("cut")
        }
        return .text("")
      }
    }
    try await withServer(app) { address in
      var received = outcomes.stream.makeAsyncIterator()
      for length in ["content-length: 100000", "transfer-encoding: chunked"] {
        try await RawClient.with(address) { client in
          try await client.send(raw: "PUT /count HTTP/1.1\r\nhost: x\r\n\(length)\r\n\r\n3\r\nabc")
          #expect(await received.next() == "piece")
        }
        var last = await received.next()
        while last == "piece" { last = await received.next() }
        #expect(last == "cut")
      }
    }
  }
}
