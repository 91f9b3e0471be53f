import HTTPSupport
import HTTPTypes
import NIOCore
import ServiceLifecycle
import StatusCodes
import Testing

@Suite("HTTP service")
struct HTTPServiceTests {
  @Test("Requests of one connection are answered in order, and an error as Google's JSON")
  func answers() async throws {
    let responder: HTTPService.Responder = { request, _ in
      guard request.path != "/bad" else {
        throw StatusError.invalidArgument("No \"such\" thing")
      }
      return .text("\(request.method.rawValue) \(request.path)")
    }

    try await withService(responder: responder) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send(
          "GET /one HTTP/1.1\r\nHost: a\r\n\r\nGET /two HTTP/1.1\r\nHost: a\r\n\r\n"
        )
        let both = try await client.receive(until: "GET /two")
        #expect(both.contains("GET /one"))
        #expect(both.hasPrefix("HTTP/1.1 200 OK\r\n"))

        try await client.send("GET /bad HTTP/1.1\r\nHost: a\r\n\r\n")
        let bad = try await client.receive(until: "}}")
        #expect(bad.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
        #expect(
          bad.hasSuffix(
            #"{"error":{"code":400,"message":"No \"such\" thing","status":"INVALID_ARGUMENT"}}"#
          )
        )
      }
    }
  }

  @Test("A body over the limit throws, announced or chunked, and one at the limit arrives whole")
  func bodyLimit() async throws {
    let responder: HTTPService.Responder = { request, _ in
      do {
        return .text("got \(try await request.wholeBody(upTo: 8).readableBytes)")
      } catch let error as BodyTooLargeError {
        return .error(error, httpStatus: 413)
      }
    }

    try await withService(responder: responder) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n12345678")
        #expect(try await client.receive(until: "got 8").contains("200 OK"))

        try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n123456789")
        let announced = try await client.receive(until: "}}")
        #expect(announced.hasPrefix("HTTP/1.1 413 "))
        #expect(announced.contains("Request payload size exceeds the limit: 8 bytes."))

        try await client.send(
          "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n4\r\n6789\r\n0\r\n\r\n"
        )
        #expect(try await client.receive(until: "}}").hasPrefix("HTTP/1.1 413 "))
      }
    }
  }

  @Test("A client that waits for 100 Continue gets it; a HEAD reply has a length and no body")
  func continueAndHead() async throws {
    let responder: HTTPService.Responder = { request, _ in
      .text("body \(try await request.wholeBody(upTo: 100).readableBytes)")
    }

    try await withService(responder: responder) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send(
          "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        )
        #expect(try await client.receive(until: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
        try await client.send("ab")
        #expect(try await client.receive(until: "body 2").contains("200 OK"))

        try await client.send(
          "HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        )
        let replies = try await client.receiveAll()
        #expect(replies.contains("Content-Length: 6"))
        #expect(replies.components(of: "body 0") == 1)
      }
    }
  }

  @Test("A port in use throws one error that names the address and the remedy")
  func portInUse() async throws {
    try await withService(responder: { _, _ in .text("") }) { address, _ in
      let error = await #expect(throws: ListenError.self) {
        try await withService(at: address, responder: { _, _ in .text("") }) { _, _ in }
      }

      #expect(error?.reason == .inUse)
      #expect(error?.description.contains("\(address) is in use") == true)
      #expect(error?.description.contains("choose another port") == true)
    }
  }

  @Test("An address that this machine lacks, and a path too long, are named")
  func badAddresses() async throws {
    let foreign = await #expect(throws: ListenError.self) {
      try await withService(
        at: .tcp(host: "192.0.2.1", port: 0),
        responder: { _, _ in .text("") }
      ) { _, _ in }
    }
    let long = await #expect(throws: ListenError.self) {
      try await withService(
        at: .unixSocket(path: "/tmp/" + String(repeating: "x", count: 200)),
        responder: { _, _ in .text("") }
      ) { _, _ in }
    }

    #expect(foreign?.reason == .notOfThisMachine)
    #expect(long?.reason == .pathTooLong)
  }

  @Test("A host that the machine does not know is named, and no error of the library shows")
  func unknownHost() async throws {
    let error = await #expect(throws: ListenError.self) {
      // No name ends in .invalid, so this needs no name server.
      try await withService(
        at: .tcp(host: "no.such.host.invalid", port: 0),
        responder: { _, _ in .text("") }
      ) { _, _ in }
    }

    #expect(error?.reason == .unknownHost)
    #expect(error?.statusCode == .failedPrecondition)
    let message = try #require(error?.statusMessage)
    #expect(message.hasPrefix("no.such.host.invalid is not a host that this machine knows ("))
    #expect(message.hasSuffix("); choose 127.0.0.1 or a name of this machine."))
    #expect(!message.contains("SocketAddressError"))
  }

  @Test("A Unix socket serves, and its file is gone after shutdown")
  func unixSocket() async throws {
    let path = "/tmp/hearth-\(UInt64.random(in: 0 ... .max)).sock"
    let reply = try await withService(
      at: .unixSocket(path: path),
      responder: { _, _ in .text("here") }
    ) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        return try await client.receive(until: "here")
      }
    }

    #expect(reply.contains("200 OK"))
    await #expect(throws: (any Error).self) {
      try await RawConnection.with(.unixSocket(path: path)) { _ in }
    }
  }

  @Test("Graceful shutdown closes idle connections and lets a running request finish")
  func gracefulShutdown() async throws {
    let (started, startedSignal) = AsyncStream<Void>.makeStream()
    let (release, releaseSignal) = AsyncStream<Void>.makeStream()
    let responder: HTTPService.Responder = { _, _ in
      startedSignal.yield()
      for await _ in release { break }
      return .text("finished")
    }

    try await withService(
      configuration: .init(drainTimeMax: .seconds(60)),
      responder: responder
    ) { address, group in
      try await RawConnection.with(address) { idle in
        try await RawConnection.with(address) { busy in
          try await busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
          for await _ in started { break }
          await group.triggerGracefulShutdown()
          #expect(try await idle.receiveAll() == "")
          releaseSignal.yield()
          #expect(try await busy.receiveAll().hasSuffix("finished"))
        }
      }
    }
  }

  @Test("After the drain time a running request's task is cancelled and its connection closed")
  func drainTimeIsBounded() async throws {
    let (started, startedSignal) = AsyncStream<Void>.makeStream()
    let responder: HTTPService.Responder = { _, _ in
      startedSignal.yield()
      let (forever, _) = AsyncStream<Void>.makeStream()
      for await _ in forever {}
      #expect(Task.isCancelled)
      return .text("late")
    }

    try await withService(
      configuration: .init(drainTimeMax: .milliseconds(10)),
      responder: responder
    ) { address, group in
      try await RawConnection.with(address) { client in
        try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        for await _ in started { break }
        await group.triggerGracefulShutdown()
        #expect(try await client.receiveAll() == "")
      }
    }
  }

  // MARK: - Disconnecting clients

  @Test("A responder is cancelled when its client leaves, unless it must finish without the client")
  func clientLeaves() async throws {
    let (started, startedSignal) = AsyncStream<Void>.makeStream()
    let (ended, endedSignal) = AsyncStream<Bool>.makeStream()
    let (release, releaseSignal) = AsyncStream<Void>.makeStream()
    let responder: HTTPService.Responder = { request, _ in
      startedSignal.yield()
      if request.path == "/kept" { for await _ in release { break } }
      if request.path == "/" { for await _ in AsyncStream<Never>.makeStream().stream {} }
      endedSignal.yield(Task.isCancelled)
      return .text("late")
    }

    try await withService(
      outlivesClient: { $0.path == "/kept" },
      responder: responder
    ) { address, _ in
      var (starts, ends) = (started.makeAsyncIterator(), ended.makeAsyncIterator())
      for path in ["/", "/kept"] {
        try await RawConnection.with(address) { client in
          try await client.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
          _ = await starts.next()
        }
        if path == "/" { #expect(await ends.next() == true) }
      }
      releaseSignal.yield()
      #expect(await ends.next() == false)
    }
  }

  @Test("A stop cancels what goes on without its client, and does not wait for what ignores that")
  func stopWithoutClients() async throws {
    let (started, startedSignal) = AsyncStream<Void>.makeStream()
    let (cancelled, cancelledSignal) = AsyncStream<Void>.makeStream()
    let (release, releaseSignal) = AsyncStream<Void>.makeStream()
    let responder: HTTPService.Responder = { _, _ in
      startedSignal.yield()
      for await _ in AsyncStream<Never>.makeStream().stream {}
      cancelledSignal.yield()
      // Ignores cancellation until the test has seen the service end.
      await Task { for await _ in release { break } }.value
      return .text("late")
    }

    try await withService(
      configuration: .init(drainTimeMax: .milliseconds(10)),
      outlivesClient: { _ in true },
      responder: responder
    ) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        for await _ in started { break }
      }
    }
    for await _ in cancelled { break }
    releaseSignal.yield()
  }
}

extension String {
  /// Counts the occurrences of a text.
  fileprivate func components(of text: String) -> Int { ranges(of: text).count }
}
