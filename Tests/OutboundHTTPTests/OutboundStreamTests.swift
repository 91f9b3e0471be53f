import OutboundHTTP
import Testing

@Suite("Streamed responses over sockets", .timeLimit(.minutes(5)))
struct OutboundStreamTests {
  @Test("Pieces are there before the body has ended")
  func pieces() async throws {
    let (asked, ask) = AsyncStream<Void>.makeStream()
    try await RawServer.run { _, connection in
      try await connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
      var number = 0
      for await _ in asked {
        number += 1
        try await connection.write("5\r\ndata\(number)\r\n")
        if number == 3 { break }
      }
      try await connection.write("0\r\n\r\n")
    } _: { server in
      let response = try await OutboundClient().stream(OutboundRequest(url: server.url))
      #expect(response.status == 200)

      var pieces: [String] = []
      ask.yield()
      for try await piece in response.body {
        pieces.append(String(decoding: piece, as: UTF8.self))
        ask.yield()
      }
      #expect(pieces == ["data1", "data2", "data3"])
    }
  }

  @Test("A sender held up again and again loses nothing")
  func backPressure() async throws {
    let line = String(repeating: "0123456789abcdef", count: 512)
    try await RawServer.run { _, connection in
      let lines = (0..<500).map { "\($0) \(line)\n" }
      let length = lines.reduce(0) { $0 + $1.utf8.count }
      try await connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
      for line in lines { try await connection.write(line) }
    } _: { server in
      let client = OutboundClient(configuration: .init(streamBufferBytesMax: 1024))
      let response = try await client.stream(OutboundRequest(url: server.url, timeout: nil))
      var expected = 0
      for try await text in response.body.lines() {
        let isRight = text == "\(expected) \(line)"
        if !isRight { Issue.record("line \(expected) is wrong") }
        expected += 1
        // Lets the sender run ahead until it reaches the limit.
        await Task.yield()
      }

      #expect(expected == 500)
    }
  }

  @Test("Letting go of a body ends the exchange")
  func lettingGo() async throws {
    let (ended, end) = AsyncStream<Void>.makeStream()
    try await RawServer.run { _, connection in
      try await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      for await _ in connection.closed {}
      end.finish()
    } _: { server in
      let client = OutboundClient()
      do {
        let response = try await client.stream(OutboundRequest(url: server.url))
        for try await piece in response.body {
          #expect(piece == Array("half".utf8))
          break
        }
      }
      for await _ in ended {}
    }
  }

  @Test("A body that breaks off throws after what had come")
  func brokenOff() async throws {
    try await RawServer.run { _, connection in
      try await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      throw RawServer.HangupError()
    } _: { server in
      let response = try await OutboundClient().stream(OutboundRequest(url: server.url))
      var pieces = response.body.makeAsyncIterator()
      let piece = try await pieces.next()
      #expect(piece == Array("half".utf8))

      let error = await #expect(throws: OutboundHTTPError.self) { try await pieces.next() }
      #expect(error?.kind == .failed)
    }
  }

  @Test("A body outlives the client that it came from")
  func outlives() async throws {
    try await RawServer.run { _, connection in
      try await connection.reply(body: "whole")
    } _: { server in
      let body = try await OutboundClient().stream(OutboundRequest(url: server.url)).body
      #expect(try await body.collect(upTo: 100) == Array("whole".utf8))
    }
  }
}

@Suite("Bodies as lines")
struct OutboundLinesTests {
  @Test("Lines come whole, however the pieces were cut", arguments: 1...12)
  func lines(pieceBytes: Int) async throws {
    let text = Array("one\r\ntwo\n\nthree".utf8)
    let pieces = stride(from: 0, to: text.count, by: pieceBytes).map {
      Array(text[$0..<min($0 + pieceBytes, text.count)])
    }
    var lines: [String] = []
    for try await line in OutboundBody(pieces).lines() { lines.append(line) }

    #expect(lines == ["one", "two", "", "three"])
  }

  @Test("A line without end is refused")
  func endless() async throws {
    let body = OutboundBody([[UInt8]](repeating: [UInt8](repeating: 65, count: 100), count: 10))
    let error = await #expect(throws: OutboundHTTPError.self) {
      for try await _ in body.lines(lineBytesMax: 500) {}
    }
    #expect(error?.kind == .tooLarge)
  }
}
