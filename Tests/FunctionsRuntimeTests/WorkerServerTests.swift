import FunctionsRuntime
import HTTPSupport
import Identity
import Logging
import TestSupport
import Testing

@Suite("Worker's server")
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
      onCall("echo", Value.self) { $0.data }
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
    let app = FunctionsApp { onCall("echo", Value.self) { $0.data } }
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

  @Test("A client that goes away cancels its function", .timeLimit(.minutes(1)))
  func disconnect() async throws {
    let begun = AsyncStream<Void>.makeStream()
    let cancelled = AsyncStream<Void>.makeStream()
    let app = FunctionsApp {
      onCall("hang", Value.self) { _ in
        begun.continuation.yield()
        defer { cancelled.continuation.yield() }
        try await Task.sleep(for: .seconds(3600))
      }
      onCall("echo", Value.self) { $0.data }
    }
    try await withServer(app) { address in
      var beginnings = begun.stream.makeAsyncIterator()
      var ends = cancelled.stream.makeAsyncIterator()
      // On a fresh connection, and on one that has served a call before.
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
}
