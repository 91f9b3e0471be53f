import OutboundHTTP
import Testing

@Suite("Streamed responses of libcurl", .timeLimit(.minutes(5)))
struct OutboundStreamTests {
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
      }

      #expect(expected == 500)
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
