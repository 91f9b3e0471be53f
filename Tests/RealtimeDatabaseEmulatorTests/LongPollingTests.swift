import Foundation
import HTTPSupport
import HTTPTypes
import RealtimeDatabaseEmulator
import TestSupport
import Testing

@Suite("Long polling")
struct LongPollingTests {
  private struct Session {
    var id: Substring
    var password: Substring

    var address: String { "/.lp?id=\(id)&pw=\(password)&ns=test" }
  }

  private func start(_ service: ServiceFixture) async throws -> Session {
    let reply = try await service.send(.get, "/.lp?start=t&ser=1&cb=5&v=5&ns=test", "", [:])
    #expect(reply.status == 200)
    #expect(reply.headers[.contentType] == "application/javascript")
    let lines = reply.body.split(separator: "\n")
    #expect(
      lines[0] == """
        function pLPCommand(c,a1,a2,a3,a4){parent.window["pLPCommand5"]&&\
        parent.window["pLPCommand5"](c,a1,a2,a3,a4);}
        """
    )
    #expect(lines[1].hasPrefix("function pRTLPCB(pN,data){"))
    let match = try #require(lines[2].wholeMatch(of: #/pLPCommand\('start','(\w+)','(\w+)'\);/#))
    #expect(lines[3].hasPrefix(#"pRTLPCB(0,[{"t":"c","d":{"t":"h","d":{"ts":"#))
    #expect(lines[3].contains(#""h":"localhost:9000""#))
    return Session(id: match.1, password: match.2)
  }

  /// Returns the parameters of segments, as clients encode them.
  private func segments(_ message: String, from number: Int, size: Int = 1840) -> [String] {
    let text = Data(message.utf8).base64EncodedString().replacing("+", with: "-")
      .replacing("/", with: "_").replacing("=", with: ".")
    let pieces = stride(from: 0, to: text.count, by: size).map { start in
      text.dropFirst(start).prefix(size)
    }
    return pieces.enumerated().map { index, piece in
      "&seg0=\(number + index)&ts0=\(pieces.count)&d0=\(piece)"
    }
  }

  @Test("A client writes and reads by scripts alone")
  func requests() async throws {
    try await ServiceFixture.with { service in
      let session = try await start(service)
      let message = #"{"t":"d","d":{"r":1,"a":"p","b":{"p":"/a","d":"é😀"}}}"#
      let parts = segments(message, from: 0, size: 20)
      // The segments arrive in any order.
      for part in parts.reversed().dropLast() {
        async let reply = service.send(.get, session.address + part, "", [:])
        await service.clock.waitForSleepers(2)
        service.clock.advance(by: .seconds(25))
        let body = try await reply.body
        #expect(body.contains(",[]);"))
      }
      let reply = try await service.send(.get, session.address + parts[0], "", [:])
      #expect(reply.body.contains(#"[{"t":"d","d":{"r":1,"b":{"s":"ok","d":""}}}]);"#))
      #expect(try await service.value("a") == #""é😀""#)
    }
  }

  @Test("A newer request takes the place of one that waits")
  func newerRequest() async throws {
    try await ServiceFixture.with { service in
      let session = try await start(service)
      async let first = service.send(.get, session.address, "", [:])
      await service.clock.waitForSleepers(2)
      let part = segments(#"{"t":"c","d":{"t":"p","d":{}}}"#, from: 0)[0]
      let second = try await service.send(.get, session.address + part, "", [:])
      let replies = try await [first.body, second.body]
      #expect(replies.contains { $0.hasSuffix(",[]);") })
      #expect(replies.contains { $0.contains(#"[{"t":"c","d":{"t":"o","d":{}}}]"#) })
    }
  }

  @Test("A page that leaves ends its session, and so does a minute of silence")
  func end() async throws {
    try await ServiceFixture.with { service in
      for isSilent in [false, true] {
        let session = try await start(service)
        let message = #"{"t":"d","d":{"r":1,"a":"o","b":{"p":"/gone","d":true}}}"#
        let part = segments(message, from: 0)[0]
        let reply = try await service.send(.get, session.address + part, "", [:])
        #expect(reply.body.contains(#""s":"ok""#))
        let page = try await service.send(.get, session.address + "&dframe=t", "", [:]).body
        #expect(page.contains("/.lp?disconn=t&id=\(session.id)&pw=\(session.password)"))
        if isSilent {
          await eventually("the session is over") {
            service.clock.advance(by: .seconds(5))
            return service.service.clientsCount == 0
          }
        } else {
          _ = try await service.send(.get, session.address + "&disconn=t", "", [:])
        }
        try await service.waitFor("gone", "true")
        _ = try await service.send(.delete, "/gone.json?ns=test")
        let closed = try await service.send(.get, session.address, "", [:])
        #expect(closed.body == "pLPCommand('close');")
      }
    }
  }

  @Test("What no client sends is refused")
  func refuses() async throws {
    try await ServiceFixture.with { service in
      let session = try await start(service)
      for part in [
        "&seg0=x&ts0=1&d0=a", "&seg0=0&ts0=0&d0=a", "&seg0=0&ts0=99999&d0=a", "&seg0=0&ts0=1",
        "&seg0=10000&ts0=1&d0=a",
      ] {
        #expect(try await service.send(.get, session.address + part, "", [:]).status == 400)
      }
      let other = "/.lp?id=\(session.id)&pw=wrong&ns=test"
      #expect(try await service.send(.get, other, "", [:]).body == "pLPCommand('close');")
      let script = "/.lp?start=t&cb=%22];alert(1);//&v=5&ns=test"
      #expect(try await service.send(.get, script, "", [:]).status == 400)
      #expect(try await service.send(.post, "/.lp?start=t", "", [:]).status == 405)
      let garbage = try await service.send(.get, session.address + "&seg0=0&ts0=1&d0=!", "", [:])
      #expect(garbage.body.contains("Invalid message"))
    }
  }
}
