import OutboundHTTP
import Testing

@Suite("Streamed responses over sockets", .timeLimit(.minutes(5)))
struct StreamConformance {
  @Test(
    "Lines of an event stream are there before the body has ended",
    arguments: TransportKind.allCases
  )
  func events(kind: TransportKind) async throws {
    let (asked, ask) = AsyncStream<Void>.makeStream()
    try await RawServer.run { _, connection in
      try await connection.write(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
      )
      var number = 0
      for await _ in asked {
        number += 1
        try await connection.write("8\r\ndata: \(number)\n\r\n")
        if number == 3 { break }
      }
      try await connection.write("0\r\n\r\n")
    } _: { server in
      let response = try await kind.make().stream(
        OutboundRequest(url: kind.url(server))
      )
      #expect(response.status == 200)

      var lines: [String] = []
      ask.yield()
      for try await line in response.body.lines() {
        lines.append(line)
        ask.yield()
      }
      #expect(lines == ["data: 1", "data: 2", "data: 3"])
    }
  }

  @Test(
    "The total timeout counts while the body is read",
    arguments: TransportKind.allCases
  )
  func timeout(kind: TransportKind) async throws {
    try await RawServer.run { _, connection in
      try await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      for await _ in connection.closed {}
    } _: { server in
      let client = kind.make()
      let request = OutboundRequest(url: kind.url(server), timeout: .milliseconds(300))
      let error = await #expect(throws: OutboundHTTPError.self) {
        for try await _ in try await client.stream(request).body {}
      }
      #expect(error?.kind == .timedOut)
    }
  }

  @Test(
    "Cancelling a reader ends the exchange for both sides",
    arguments: TransportKind.allCases
  )
  func cancellation(kind: TransportKind) async throws {
    let (ended, end) = AsyncStream<Void>.makeStream()
    try await RawServer.run { _, connection in
      try await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      for await _ in connection.closed {}
      end.finish()
    } _: { server in
      let (arrived, arrival) = AsyncStream<Void>.makeStream()
      let client = kind.make()
      let body = try await client.stream(OutboundRequest(url: kind.url(server))).body
      let error = await withTaskGroup(of: OutboundHTTPError?.self) { group in
        group.addTask {
          await #expect(throws: OutboundHTTPError.self) {
            for try await _ in body { arrival.yield() }
          }
        }
        for await _ in arrived { break }
        group.cancelAll()
        return await group.next() ?? nil
      }

      #expect(error?.kind == .cancelled)
      for await _ in ended {}
    }
  }

  @Test(
    "Letting go of a body ends the exchange",
    arguments: TransportKind.allCases
  )
  func lettingGo(kind: TransportKind) async throws {
    let (ended, end) = AsyncStream<Void>.makeStream()
    try await RawServer.run { _, connection in
      try await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      for await _ in connection.closed {}
      end.finish()
    } _: { server in
      let client = kind.make()
      do {
        let response = try await client.stream(OutboundRequest(url: kind.url(server)))
        for try await piece in response.body {
          #expect(piece == Array("half".utf8))
          break
        }
      }
      for await _ in ended {}
      withExtendedLifetime(client) {}
    }
  }

  @Test(
    "A body that breaks off throws after what had come",
    arguments: TransportKind.allCases
  )
  func brokenOff(kind: TransportKind) async throws {
    try await RawServer.run { _, connection in
      try await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      throw RawServer.HangupError()
    } _: { server in
      let client = kind.make()
      let response = try await client.stream(OutboundRequest(url: kind.url(server)))
      var pieces = response.body.makeAsyncIterator()
      let piece = try await pieces.next()
      #expect(piece == Array("half".utf8))

      let error = await #expect(throws: OutboundHTTPError.self) { try await pieces.next() }
      #expect(error?.kind == .failed)
    }
  }

  @Test(
    "A body outlives the client that it came from",
    arguments: TransportKind.allCases
  )
  func outlives(kind: TransportKind) async throws {
    try await RawServer.run { _, connection in
      try await connection.reply(body: "whole")
    } _: { server in
      let request = OutboundRequest(url: kind.url(server))
      let body = try await kind.make().stream(request).body
      #expect(try await body.collect(upTo: 100) == Array("whole".utf8))
    }
  }
}
