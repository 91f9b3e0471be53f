import HTTPSupport
import Logging
import NIOCore
import Synchronization
import Testing
import TestSupport

@Suite("Connections of all ports", .timeLimit(.minutes(5)))
struct ConnectionRosterTests {
  private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  private func get(_ path: String) -> String { "GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n" }

  @Test("Past the bound the connection idle longest gives way, whichever port it is of")
  func idle() async throws {
    let roster = ConnectionRoster(max: 3, logger: logger)
    let responder: HTTPService.Responder = { request, _ in .text(request.path) }
    try await withService(roster: roster, responder: responder) { first, _ in
      try await withService(roster: roster, responder: responder) { second, _ in
        try await RawConnection.with(first) { oldest in
          try await oldest.send(get("/oldest"))
          _ = try await oldest.receive(until: "/oldest")
          try await RawConnection.with(second) { unused in
            try await unused.send(get("/unused"))
            _ = try await unused.receive(until: "/unused")
            try await RawConnection.with(first) { used in
              try await used.send(get("/used"))
              _ = try await used.receive(until: "/used")
              try await oldest.send(get("/again"))
              _ = try await oldest.receive(until: "/again")
              // Now the second connection has been idle longest.
              try await RawConnection.with(second) { new in
                try await new.send(get("/new"))
                #expect(try await new.receive(until: "/new").contains("200 OK"))
                #expect(try await unused.receiveAll().isEmpty)
                try await RawConnection.with(first) { newer in
                  try await newer.send(get("/newer"))
                  #expect(try await newer.receive(until: "/newer").contains("200 OK"))
                  #expect(try await used.receiveAll().isEmpty)
                }
              }
            }
          }
        }
      }
    }
  }

  @Test("While no connection is idle, new ones wait until one has ended")
  func busy() async throws {
    let (gate, opener) = AsyncStream.makeStream(of: Void.self)
    let order = Mutex<[String]>([])
    let responder: HTTPService.Responder = { request, _ in
      order.withLock { $0.append(request.path) }
      if request.path == "/held" { for await _ in gate { break } }
      return .text(request.path)
    }
    let roster = ConnectionRoster(max: 1, idleMin: .seconds(3600), logger: logger)
    try await withService(roster: roster, responder: responder) { address, _ in
      let waiting = try await RawConnection.with(address) { held in
        try await held.send(get("/held"))
        await eventually("the first request is held") { order.withLock { !$0.isEmpty } }
        let (sent, sending) = AsyncStream.makeStream(of: Void.self)
        let waiting = Task {
          try await RawConnection.with(address) { waiting in
            try await waiting.send(get("/waiting"))
            sending.yield()
            return try await waiting.receive(until: "/waiting")
          }
        }
        for await _ in sent { break }
        // No event shows that a connection stays unaccepted; a wrong server may accept it now.
        for _ in 0..<100 { await Task.yield() }
        order.withLock { $0.append("opened") }
        opener.yield()
        #expect(try await held.receive(until: "\r\n\r\n").contains("200 OK"))
        return waiting
      }
      #expect(try await waiting.value.contains("200 OK"))
    }
    #expect(order.withLock { $0 } == ["/held", "opened", "/waiting"])
  }
}
