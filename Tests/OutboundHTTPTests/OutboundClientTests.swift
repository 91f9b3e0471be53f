import OutboundHTTP
import Testing

@Suite("Client over sockets", .timeLimit(.minutes(5)))
struct OutboundClientTests {
  @Test("Fields of one name stay apart, and a body without a type gets none")
  func fields() async throws {
    try await RawServer.run { request, connection in
      try await connection.reply(
        headers: ["X-Answer: a", "x-answer: b"],
        body: request.header("content-type") ?? "-"
      )
    } _: { server in
      let response = try await OutboundClient().send(
        OutboundRequest(method: "POST", url: server.url, body: [1])
      )

      #expect(response.headers.values("x-answer") == ["a", "b"])
      #expect(response.text == "-")
    }
  }

  @Test("Many requests share a few connections, in line")
  func concurrency() async throws {
    try await RawServer.run { request, connection in
      try await connection.reply(body: request.line)
    } _: { server in
      let client = OutboundClient(configuration: .init(connectionsMax: 4))
      let right = try await withThrowingTaskGroup(of: Bool.self) { group in
        for number in 0..<200 {
          group.addTask {
            let response = try await client.send(OutboundRequest(url: "\(server.url)/\(number)"))
            return response.text == "GET /\(number) HTTP/1.1"
          }
        }
        return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      }

      #expect(right == 200)
      #expect(server.connections.now <= 4)
    }
  }

  @Test("Past the line a request is refused at once")
  func line() async throws {
    try await RawServer.run { _, connection in
      for await _ in connection.closed {}
    } _: { server in
      let client = OutboundClient(configuration: .init(connectionsMax: 1, waitingMax: 0))
      let first = try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { _ = try await client.send(OutboundRequest(url: server.url)) }
        // When a request is refused, the first one is in progress. Until then requests wait and
        // time out.
        var refusal: OutboundHTTPError?
        while refusal?.kind != .failed {
          do {
            let request = OutboundRequest(url: server.url, timeout: .milliseconds(10))
            _ = try await client.send(request)
          } catch let error as OutboundHTTPError {
            refusal = error
          }
        }
        group.cancelAll()
        return refusal
      }

      #expect(first?.message == "1 requests are under way already; try later")
    }
  }

  @Test("Silence ends with the total timeout, in line too")
  func timeout() async throws {
    try await RawServer.run { _, connection in
      for await _ in connection.closed {}
    } _: { server in
      let client = OutboundClient(configuration: .init(connectionsMax: 1))
      let request = OutboundRequest(url: server.url, timeout: .milliseconds(60))
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<3 {
          group.addTask {
            let error = await #expect(throws: OutboundHTTPError.self) {
              try await client.send(request)
            }
            #expect(error?.kind == .timedOut)
          }
        }
      }
    }
  }
}
