import HTTPMessages
import HTTPSupport
import HTTPTypes
import NIOCore
import RealtimeDatabaseEmulator
import Synchronization
import TestSupport
import Testing

@Suite("Event streams")
struct EventStreamTests {
  /// The text that a client of a stream has read.
  private final class Reader: Sendable {
    private let received = Mutex("")

    var text: String { received.withLock { $0 } }

    func read(_ body: Response.Body) async throws {
      guard case .produced(let produce) = body else { return }
      try await produce { piece in self.received.withLock { $0 += String(buffer: piece) } }
    }
  }

  private func open(
    _ service: ServiceFixture,
    _ target: String,
    _ body: (Reader) async throws -> Void
  ) async throws {
    let response = await service.respond(
      .get,
      target,
      "",
      [.authorization: "Bearer owner", .accept: "text/event-stream"]
    )
    #expect(response.status == .ok)
    #expect(response.headers[.contentType] == "text/event-stream")
    let reader = Reader()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await reader.read(response.body) }
      try await body(reader)
      group.cancelAll()
    }
  }

  @Test("The value comes first, then each change with its path below the node")
  func changes() async throws {
    try await ServiceFixture.with { service in
      try await open(service, "/a.json?ns=test") { reader in
        await eventually("the first value") {
          reader.text == "event: put\ndata: {\"path\":\"/\",\"data\":null}\n\n"
        }
        _ = try await service.send(.put, "/a/b/c.json?ns=test", "1")
        _ = try await service.send(.patch, "/a.json?ns=test", #"{"d":[1,2],"e/f":null}"#)
        _ = try await service.send(.put, "/x.json?ns=test", "1")
        _ = try await service.send(.put, "/.json?ns=test", #"{"a":3}"#)
        await eventually("the last value") { reader.text.contains(#""data":3}"#) }
        #expect(
          reader.text == """
            event: put
            data: {"path":"/","data":null}

            event: put
            data: {"path":"/b/c","data":1}

            event: patch
            data: {"path":"/","data":{"d":[1,2],"e/f":null}}

            event: put
            data: {"path":"/","data":3}


            """
        )
      }
    }
  }

  @Test("A silent stream is kept alive")
  func keepAlive() async throws {
    try await ServiceFixture.with { service in
      try await open(service, "/a.json?ns=test") { reader in
        await eventually("the first value") { reader.text.contains("put") }
        await eventually("a sign of life") {
          service.clock.advance(by: .seconds(5))
          return reader.text.hasSuffix("event: keep-alive\ndata: null\n\n")
        }
      }
    }
  }

  @Test("A stream ends when its token expires, and says so")
  func expiry() async throws {
    try await ServiceFixture.with { service in
      let response = await service.respond(
        .get,
        "/a.json?ns=test&auth=\(ServiceFixture.token)",
        "",
        [.accept: "text/event-stream"]
      )
      let reader = Reader()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await reader.read(response.body) }
        await eventually("the first value") { reader.text.contains("put") }
        service.time.advance(by: .seconds(101))
        await eventually("the end") {
          service.clock.advance(by: .seconds(5))
          return reader.text.contains("event: auth_revoked\ndata: \"credential")
        }
        try await group.waitForAll()
      }
    }
  }

  @Test("A stream that the rules do not allow is a plain answer, and ends when they change")
  func permission() async throws {
    try await ServiceFixture.with { service in
      try await service.setRules(#"{"rules":{"a":{".read":true}}}"#)
      let headers: HTTPFields = [.accept: "text/event-stream"]
      let denied = try await service.send(.get, "/b.json?ns=test", "", headers)
      #expect(denied.status == 401)
      #expect(denied.body.contains("Permission denied"))
      let response = await service.respond(.get, "/a.json?ns=test", "", headers)
      let reader = Reader()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await reader.read(response.body) }
        await eventually("the first value") { reader.text.contains("put") }
        try await service.setRules(#"{"rules":{}}"#)
        try await group.waitForAll()
      }
      #expect(reader.text.hasSuffix("event: cancel\ndata: null\n\n"))
    }
  }

  @Test("A query is streamed, and its errors are plain answers")
  func query() async throws {
    try await ServiceFixture.with { service in
      _ = try await service.send(.put, "/q.json?ns=test", #"{"a":1,"b":2,"c":3}"#)
      let target = #"/q.json?ns=test&orderBy="$key"&limitToLast=2"#
      try await open(service, target) { reader in
        await eventually("the children") { reader.text.contains(#""data":{"b":2,"c":3}}"#) }
        _ = try await service.send(.put, "/q/d.json?ns=test", "4")
        await eventually("the change") { reader.text.contains(#""d":4"#) }
        #expect(reader.text.contains(#""b":null"#))
      }
      let bad = try await service.send(
        .get,
        "/q.json?ns=test&limitToLast=2",
        "",
        [.authorization: "Bearer owner", .accept: "text/event-stream"]
      )
      #expect(bad.status == 400)
    }
  }

  @Test("A stream that nobody reads ends, and leaves nothing behind")
  func unread() async throws {
    try await ServiceFixture.with { service in
      var response: Response? = await service.respond(
        .get,
        "/a.json?ns=test",
        "",
        [.authorization: "Bearer owner", .accept: "text/event-stream"]
      )
      for number in 0..<1100 {
        _ = try await service.send(.put, "/a.json?ns=test&print=silent", "\(number)")
      }
      let reader = Reader()
      try await reader.read(try #require(response).body)
      #expect(reader.text.contains("data\":5}"))
      #expect(!reader.text.contains("data\":1099}"))
      response = nil
      await eventually("no client is left") { service.service.clientsCount == 0 }
    }
  }
}
