import HTTP2Server
import HTTPSupport
import NIOCore
import NIOHPACK
import NIOHTTP2
import ServiceLifecycle
import StatusCodes
import SwiftProtobuf
import Testing

@Suite("gRPC server over loopback", .timeLimit(.minutes(5)))
struct GRPCServerTests {
  private static func echo(_ service: inout GRPCService) {
    service.unary("Say") { (request: Text, _) in Text("<\(request.value)>") }
    service.unary("Fail") { (request: Text, _) -> Text in
      throw StatusError(.failedPrecondition, request.value)
    }
    service.unary("Crash") { (_: Text, _) -> Text in throw Secret() }
    service.serverStreaming("Count") { (request: Text, replies: GRPCResponseStream<Text>, _) in
      for number in 0..<(Int(request.value) ?? 0) { try await replies.send(Text("\(number)")) }
    }
  }

  private struct Secret: Error {
    let password = "hunter2"
  }

  @Test("A unary call gets its reply, with a head before it and status 0 after it")
  func unary() async throws {
    try await withServer(Self.echo) { address, _ in
      try await HTTP2Client.with(address) { client in
        let reply = try await client.call("/test.Echo/Say", "hi")

        #expect(try reply.texts == ["<hi>"])
        #expect(reply.headers.count == 2)
        #expect(reply.headers.first?.first(name: ":status") == "200")
        #expect(reply.headers.first?.first(name: "content-type") == "application/grpc")
        #expect(reply.status == "0")
        #expect(reply.reset == nil)
      }
    }
  }

  @Test("A handler sees path, headers and deadline")
  func context() async throws {
    try await withServer { service in
      service.unary("Say") { (_: Text, context) in
        let left = context.deadline.map { ContinuousClock.now.duration(to: $0) } ?? .zero
        let tag = context.metadata.first(name: "x-tag") ?? ""
        let host = context.remoteAddress?.ipAddress ?? ""
        let isRight = left > .seconds(3000) && left <= .seconds(3600)
        return Text("\(context.path) \(tag) \(isRight) \(host)")
      }
    } _: { address, _ in
      try await HTTP2Client.with(address) { client in
        let reply = try await client.call(
          "/test.Echo/Say",
          headers: ["x-tag": "a", "grpc-timeout": "1H"],
          ""
        )

        #expect(try reply.texts == ["/test.Echo/Say a true 127.0.0.1"])
      }
    }
  }

  @Test("An error's status and percent-encoded message come as trailers only")
  func errors() async throws {
    try await withServer(Self.echo) { address, _ in
      try await HTTP2Client.with(address) { client in
        let known = try await client.call("/test.Echo/Fail", "100% füßé\n")
        let unknown = try await client.call("/test.Echo/Crash", "")

        #expect(known.headers.count == 1)
        #expect(known.trailers.first(name: ":status") == "200")
        #expect(known.status == "9")
        #expect(known.message == "100%25 f%C3%BC%C3%9F%C3%A9%0A")
        #expect(unknown.status == "13")
        #expect(unknown.message == "Internal error.")
      }
    }
  }

  /// Each row: path, headers, expected status and message.
  private static let refused: [(String, HPACKHeaders, String, String)] = [
    ("/test.Echo/Nope", [:], "12", "The service test.Echo has no method Nope."),
    ("/other.Service/Say", [:], "12", "No service answers /other.Service/Say."),
    ("/test.Echo/Say", ["grpc-timeout": "soon"], "3", "The grpc-timeout soon is malformed."),
    (
      "/test.Echo/Say", ["grpc-encoding": "zstd"], "12",
      "The compression zstd is not supported; use identity,gzip."
    ),
  ]

  @Test("What is not a call of ours is refused with its own status", arguments: refused)
  func refusals(path: String, headers: HPACKHeaders, status: String, message: String) async throws {
    try await withServer(Self.echo) { address, _ in
      try await HTTP2Client.with(address) { client in
        let reply = try await client.call(path, headers: headers, "x")

        #expect(reply.status == status)
        #expect(reply.message == message)
        let compressed = headers.contains(name: "grpc-encoding")
        #expect(
          reply.trailers.first(name: "grpc-accept-encoding") == (compressed ? "identity,gzip" : nil)
        )
        #expect(try await client.call("/test.Echo/Say", "y").status == "0")
      }
    }
  }

  @Test("A stream that is not gRPC gets 415 and no grpc-status")
  func wrongContentType() async throws {
    try await withServer(Self.echo) { address, _ in
      try await HTTP2Client.with(address) { client in
        for type in ["application/json", "application/grpc-web", "application/grpc+json"] {
          let reply = try await client.call("/test.Echo/Say", headers: ["content-type": type], "x")
          #expect(reply.trailers.first(name: ":status") == "415")
          #expect(reply.status == nil)
        }
        let proto = try await client.call(
          "/test.Echo/Say",
          headers: ["content-type": "application/grpc+proto"],
          "x"
        )
        #expect(proto.status == "0")
      }
    }
  }

  @Test("A request cut into single bytes is one request")
  func bytewise() async throws {
    try await withServer(Self.echo) { address, _ in
      try await HTTP2Client.with(address) { client in
        let reply = try await client.stream { call in
          try await call.open("/test.Echo/Say")
          for byte in try framed("cut").readableBytesView {
            try await call.send(ByteBuffer(bytes: [byte]))
          }
          try await call.send(ByteBuffer(), end: true)
          return try await call.reply()
        }

        #expect(try reply.texts == ["<cut>"])
      }
    }
  }

  @Test("No message, two in one frame, half a one and bytes that are none are errors")
  func malformedRequests() async throws {
    try await withServer(Self.echo) { address, _ in
      try await HTTP2Client.with(address) { client in
        let one = try framed("one")
        var two = one
        two.writeImmutableBuffer(one)
        let bodies: [(ByteBuffer, String)] = [
          (ByteBuffer(), "12"),
          (two, "12"),
          (one.getSlice(at: 0, length: 7) ?? one, "3"),
          (ByteBuffer(bytes: [1, 0, 0, 0, 0]), "13"),
          (ByteBuffer(string: "garbage"), "3"),
          (ByteBuffer(bytes: [0, 0, 0, 0, 2, 0xFF, 0xFF]), "3"),
        ]
        for (body, status) in bodies {
          #expect(try await client.call("/test.Echo/Say", body: body).status == status)
        }
        #expect(try await client.call("/test.Echo/Say", "after").status == "0")
      }
    }
  }

  @Test("A request over the limit is RESOURCE_EXHAUSTED at its prefix, and one at the limit is not")
  func oversized() async throws {
    try await withServer(Self.echo) { address, _ in
      try await HTTP2Client.with(address) { client in
        var prefix = ByteBuffer(bytes: [0])
        prefix.writeInteger(UInt32(11_534_337))
        let over = try await client.stream { call in
          try await call.open("/test.Echo/Say")
          try await call.send(prefix)
          return try await call.reply()
        }
        #expect(over.status == "8")
        #expect(over.message == "Request payload size exceeds the limit: 11534336 bytes.")
        #expect(over.reset == .noError)
      }
    }
    try await withServer(configuration: .init(requestBytesMax: 100_000), Self.echo) { address, _ in
      try await HTTP2Client.with(address) { client in
        // The field's tag and length take four bytes.
        let text = String(repeating: "x", count: 100_000 - 4)
        let reply = try await client.call("/test.Echo/Say", text)
        #expect(try reply.texts == ["<\(text)>"])
        #expect(try await client.call("/test.Echo/Say", text + "x").status == "8")
      }
    }
  }

  @Test("Past its deadline a call ends with DEADLINE_EXCEEDED and its handler is cancelled")
  func deadline() async throws {
    let (cancelled, signal) = AsyncStream<Void>.makeStream()
    try await withServer { service in
      service.unary("Hang") { (_: Text, _) in
        try await untilCancelled { signal.yield() }
        return Text("late")
      }
    } _: { address, _ in
      try await HTTP2Client.with(address) { client in
        let reply = try await client.call("/test.Echo/Hang", headers: ["grpc-timeout": "5m"], "")
        for await _ in cancelled { break }

        #expect(reply.status == "4")
        #expect(reply.headers.count == 1)
      }
    }
  }

  @Test("A reset and a closed connection cancel the handlers")
  func cancellation() async throws {
    let (started, startedSignal) = AsyncStream<Void>.makeStream()
    let (cancelled, signal) = AsyncStream<Void>.makeStream()
    try await withServer { service in
      service.unary("Hang") { (_: Text, _) in
        startedSignal.yield()
        try await untilCancelled { signal.yield() }
        return Text("late")
      }
    } _: { address, _ in
      try await HTTP2Client.with(address) { client in
        try await client.stream { call in
          try await call.open("/test.Echo/Hang")
          try await call.send(try framed(""), end: true)
          for await _ in started { break }
          try await call.reset()
          for await _ in cancelled { break }
        }
        async let second: HTTP2Client.Reply? = try? client.call("/test.Echo/Hang", "")
        for await _ in started { break }
        try await client.connection.close()
        for await _ in cancelled { break }
        _ = await second
      }
    }
  }

  @Test("Server streams deliver every message in order, and an error after them")
  func serverStreaming() async throws {
    try await withServer { service in
      Self.echo(&service)
      service.serverStreaming("Break") { (_: Text, replies: GRPCResponseStream<Text>, _) in
        try await replies.send(Text("first"))
        throw StatusError(.aborted, "Broken.")
      }
    } _: { address, _ in
      try await HTTP2Client.with(address) { client in
        let reply = try await client.call("/test.Echo/Count", "20000")
        #expect(try reply.texts == (0..<20000).map(String.init))
        #expect(reply.status == "0")

        let broken = try await client.call("/test.Echo/Break", "")
        #expect(try broken.texts == ["first"])
        #expect(broken.status == "10")
        #expect(broken.message == "Broken.")

        let none = try await client.call("/test.Echo/Count", "0")
        #expect(try none.texts == [])
        #expect(none.status == "0")
      }
    }
  }

  @Test("A sender waits when the client does not read, and a reset ends its wait")
  func backPressure() async throws {
    let (ended, signal) = AsyncStream<Int>.makeStream()
    try await withServer { service in
      service.serverStreaming("Flood") { (_: Text, replies: GRPCResponseStream<Text>, _) in
        let chunk = Text(String(repeating: "x", count: 16 * 1024))
        var sent = 0
        do {
          while true {
            try await replies.send(chunk)
            sent += 1
          }
        } catch {
          signal.yield(sent)
          throw error
        }
      }
    } _: { address, _ in
      try await HTTP2Client.with(address) { client in
        let sent = try await client.stream { call in
          try await call.open("/test.Echo/Flood", headers: ["grpc-timeout": "10S"])
          try await call.send(try framed(""), end: true)
          // The client reads nothing, so the window closes; the deadline ends the call.
          for await sent in ended { return sent }
          return 0
        }

        // The client's window, NIO's buffer and the server's buffer total about 200 KiB.
        #expect(sent > 0)
        #expect(sent < 64)
        #expect(
          try await client.call("/test.Echo/Flood", headers: ["grpc-timeout": "1m"], "").status
            == "4"
        )
      }
    }
  }

  @Test("A bidirectional call answers each request as it comes, and ends with its client")
  func bidirectional() async throws {
    try await withServer { service in
      service.bidirectional("Chat") {
        (requests: GRPCRequestStream<Text>, replies: GRPCResponseStream<Text>, _) in
        for try await request in requests { try await replies.send(Text("<\(request.value)>")) }
        try await replies.send(Text("bye"))
      }
    } _: { address, _ in
      try await HTTP2Client.with(address) { client in
        let reply = try await client.stream { call in
          try await call.open("/test.Echo/Chat")
          try await call.send(try framed("a"))
          guard case .headers = try await call.next() else { return HTTP2Client.Reply() }
          guard case .data = try await call.next() else { return HTTP2Client.Reply() }
          var rest = ByteBuffer()
          for number in 0..<1000 { rest.writeImmutableBuffer(try framed("\(number)")) }
          try await call.send(rest, end: true)
          return try await call.reply()
        }

        #expect(try reply.texts == (0..<1000).map { "<\($0)>" } + ["bye"])
        #expect(reply.status == "0")

        let broken = try await client.call("/test.Echo/Chat", body: ByteBuffer(string: "garbage"))
        #expect(broken.status == "3")
      }
    }
  }

  @Test("300 calls at once on one connection are all answered")
  func manyStreams() async throws {
    let gate = Gate(count: 300)
    try await withServer { service in
      service.unary("Meet") { (request: Text, _) in
        await gate.arrive()
        return request
      }
    } _: { address, _ in
      try await HTTP2Client.with(address) { client in
        let answered = try await withThrowingTaskGroup(of: String?.self) { group in
          for number in 0..<300 {
            group.addTask { try await client.call("/test.Echo/Meet", "\(number)").texts.first }
          }
          return try await group.reduce(into: Set<String>()) { $0.insert($1 ?? "none") }
        }

        #expect(answered == Set((0..<300).map(String.init)))
      }
    }
  }

  @Test("1 000 resets in a row do not cost the client its connection")
  func manyResets() async throws {
    try await withServer { service in
      Self.echo(&service)
      service.unary("Hang") { (_: Text, _) in
        try await untilCancelled {}
        return Text("late")
      }
    } _: { address, _ in
      try await HTTP2Client.with(address) { client in
        for _ in 0..<1000 {
          try await client.stream { call in
            try await call.open("/test.Echo/Hang")
            try await call.reset()
          }
        }

        #expect(try await client.call("/test.Echo/Say", "still here").status == "0")
      }
    }
  }

  @Test("Graceful shutdown lets a running call finish, then closes the connection")
  func gracefulShutdown() async throws {
    let (started, startedSignal) = AsyncStream<Void>.makeStream()
    let (release, releaseSignal) = AsyncStream<Void>.makeStream()
    try await withServer(http: .init(drainTimeMax: .seconds(60))) { service in
      service.unary("Wait") { (_: Text, _) in
        startedSignal.yield()
        for await _ in release { break }
        return Text("finished")
      }
    } _: { address, group in
      try await HTTP2Client.with(address) { client in
        async let reply = client.call("/test.Echo/Wait", "")
        for await _ in started { break }
        await group.triggerGracefulShutdown()
        releaseSignal.yield()

        let texts = try await reply.texts
        #expect(texts == ["finished"])
        try await client.connection.closeFuture.get()
      }
    }
  }

  @Test("After the drain time a call that goes on is cancelled")
  func drainTimeIsBounded() async throws {
    let (started, startedSignal) = AsyncStream<Void>.makeStream()
    let (cancelled, signal) = AsyncStream<Void>.makeStream()
    try await withServer(http: .init(drainTimeMax: .milliseconds(10))) { service in
      service.unary("Hang") { (_: Text, _) in
        startedSignal.yield()
        try await untilCancelled { signal.yield() }
        return Text("late")
      }
    } _: { address, group in
      try await HTTP2Client.with(address) { client in
        async let reply: HTTP2Client.Reply? = try? client.call("/test.Echo/Hang", "")
        for await _ in started { break }
        await group.triggerGracefulShutdown()
        for await _ in cancelled { break }
        _ = await reply
      }
    }
  }

  @Test("HTTP/1.1 and gRPC share the port")
  func onePort() async throws {
    try await withServer(Self.echo) { address, _ in
      let http = try await RawHTTP1.get(address)
      try await HTTP2Client.with(address) { client in
        let reply = try await client.call("/test.Echo/Say", "x")
        #expect(reply.status == "0")
      }

      #expect(http.hasPrefix("HTTP/1.1 200 OK\r\n"))
      #expect(http.hasSuffix("http"))
    }
  }
}

/// Waits for the task's cancellation, calls `onCancel` and throws.
private func untilCancelled(_ onCancel: @escaping @Sendable () -> Void) async throws {
  let (forever, _) = AsyncStream<Void>.makeStream()
  for await _ in forever {}
  onCancel()
  try Task.checkCancellation()
}

/// A barrier that opens when `count` tasks have arrived.
private actor Gate {
  private var missing: Int
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(count: Int) {
    missing = count
  }

  func arrive() async {
    missing -= 1
    if missing > 0 { return await withCheckedContinuation { waiting.append($0) } }
    for continuation in waiting { continuation.resume() }
    waiting = []
  }
}
