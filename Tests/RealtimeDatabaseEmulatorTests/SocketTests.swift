import Foundation
import HTTPSupport
import HTTPTypes
import Logging
import RealtimeDatabaseEmulator
import ServiceLifecycle
import TestSupport
import Testing

@Suite("WebSockets")
struct SocketTests {
  private func ok(_ number: Int, _ data: String = #""""#) -> String {
    #"{"t":"d","d":{"r":\#(number),"b":{"s":"ok","d":\#(data)}}}"#
  }

  private func failure(_ number: Int, _ status: String, _ text: String) -> String {
    #"{"t":"d","d":{"r":\#(number),"b":{"s":"\#(status)","d":"\#(text)"}}}"#
  }

  private func push(_ action: String, _ path: String, _ data: String, _ tag: Int? = nil) -> String {
    #"{"t":"d","d":{"a":"\#(action)","b":{"p":"\#(path)","d":\#(data)"#
      + (tag.map { #","t":\#($0)"# } ?? "") + "}}}"
  }

  /// Connects a client to a running service.
  private func withSocket(
    budget: TransferBudget? = nil,
    _ body: @Sendable (ServiceFixture, Int, inout SocketClient) async throws -> Void
  ) async throws {
    try await ServiceFixture.with(budget: budget) { service in
      try await service.withPort { port, _ in
        try await ServiceFixture.withSocket(port: port) { try await body(service, port, &$0) }
      }
    }
  }

  @Test("The server speaks first, names the host of the request, and answers pings")
  func hello() async throws {
    try await withSocket { _, port, client in
      let hello = try await client.receive()
      #expect(
        hello?.hasPrefix(
          #"{"t":"c","d":{"t":"h","d":{"ts":1700000000000,"v":"5","h":"127.0.0.1:\#(port)","s":""#
        ) == true
      )
      try await client.send("0")
      try await client.send(#"{"t":"c","d":{"t":"p","d":{}}}"#)
      #expect(try await client.receive() == #"{"t":"c","d":{"t":"o","d":{}}}"#)
      try await client.sendFrame(Array("x".utf8), opcode: 9)
      #expect(try await client.receive() == "x")
    }
  }

  @Test("A listener gets its value before the response, and its own write before the response")
  func order() async throws {
    try await withSocket { service, _, client in
      _ = try await service.send(.put, "/a.json?ns=test", #"{"b":1}"#)
      let listen = try await client.request("q", #"{"p":"/a","h":""}"#)
      #expect(
        try await client.receive(2) == [push("d", "a", #"{"b":1}"#), ok(listen, "{}")]
      )
      let put = try await client.request("p", #"{"p":"/a/c","d":[true]}"#)
      #expect(try await client.receive(2) == [push("d", "a/c", #"{"0":true}"#), ok(put)])
      let merge = try await client.request("m", #"{"p":"/a","d":{"b":null,"x/y":2}}"#)
      #expect(
        try await client.receive(2) == [push("m", "a", #"{"b":null,"x/y":2}"#), ok(merge)]
      )
      let priority = try await client.request("p", #"{"p":"/a/x/.priority","d":5}"#)
      #expect(try await client.receive(2).last == ok(priority))
      let get = try await client.request("g", #"{"p":"/a/x","q":{}}"#)
      #expect(try await client.receive(1) == [ok(get, #"{".priority":5,"y":2}"#)])
      let unlisten = try await client.request("n", #"{"p":"/a"}"#)
      let last = try await client.request("p", #"{"p":"/a","d":null}"#)
      #expect(try await client.receive(2) == [ok(unlisten), ok(last)])
    }
  }

  @Test("A query has a tag, and its window moves in one message")
  func query() async throws {
    try await withSocket { service, _, client in
      _ = try await service.send(.put, "/q.json?ns=test", #"{"a":1,"b":2,"c":3}"#)
      let listen = try await client.request(
        "q",
        #"{"p":"/q","q":{"l":2,"vf":"r","i":".key"},"t":7,"h":""}"#
      )
      #expect(
        try await client.receive(2) == [push("d", "q", #"{"b":2,"c":3}"#, 7), ok(listen, "{}")]
      )
      _ = try await service.send(.put, "/q/d.json?ns=test", "4")
      let moved = try await client.receive(1)[0]
      #expect(moved.contains(#""a":"m""#) && moved.contains(#""b":null"#))
      #expect(moved.contains(#""d":4"#) && moved.contains(#""t":7"#))
    }
  }

  @Test("A transaction whose value has changed is stale")
  func transaction() async throws {
    try await withSocket { _, _, client in
      let first = try await client.request("p", #"{"p":"/n","d":1,"h":""}"#)
      #expect(try await client.receive(1) == [ok(first)])
      let second = try await client.request("p", #"{"p":"/n","d":2,"h":""}"#)
      #expect(
        try await client.receive(1) == [
          failure(second, "datastale", "Transaction hash does not match")
        ]
      )
      let third = try await client.request(
        "p",
        #"{"p":"/n","d":2,"h":"YPVfR2bXt/lcDjiQZ8pOkAd3qkQ="}"#
      )
      #expect(try await client.receive(1) == [ok(third)])
    }
  }

  @Test("However a socket ends, its writes for the disconnect are applied once")
  func onDisconnect() async throws {
    try await ServiceFixture.with { service in
      try await service.withPort { port, _ in
        for end in ["close frame", "end of the connection"] {
          try await ServiceFixture.withSocket(port: port) { client in
            let set = try await client.request("o", #"{"p":"/on/a","d":{".sv":"timestamp"}}"#)
            let merge = try await client.request(
              "om",
              #"{"p":"/on","d":{"b":{".sv":{"increment":1}}}}"#
            )
            let cancelled = try await client.request("o", #"{"p":"/on/c","d":1}"#)
            let cancel = try await client.request("oc", #"{"p":"/on/c","d":null}"#)
            #expect(
              try await client.receive(4) == [set, merge, cancelled, cancel].map { ok($0) }
            )
            #expect(try await service.value("on") == "null")
            guard end == "close frame" else { return }
            try await client.sendFrame([3, 0xE8], opcode: 8)
            #expect(try await client.receive() == nil)
          }
          try await service.waitFor("on", #"{"a":1700000000000,"b":1}"#)
          _ = try await service.send(.delete, "/on.json?ns=test")
        }
      }
    }
  }

  @Test("A silent client is gone after a minute; one that sends anything stays")
  func silence() async throws {
    try await withSocket { service, _, client in
      let set = try await client.request("o", #"{"p":"/gone","d":true}"#)
      #expect(try await client.receive(1) == [ok(set)])
      for _ in 0..<4 {
        for _ in 0..<9 {
          await service.clock.waitForSleepers()
          service.clock.advance(by: .seconds(5))
        }
        try await client.send("0")
        try await client.send(#"{"t":"c","d":{"t":"p","d":{}}}"#)
        #expect(try await client.receive(1)[0].contains(#""t":"o""#))
      }
      #expect(try await service.value("gone") == "null")
      await eventually("the client is gone") {
        service.clock.advance(by: .seconds(5))
        return service.service.clientsCount == 0
      }
      #expect(try await client.receive() == nil)
      try await service.waitFor("gone", "true")
    }
  }

  @Test("On the service's stop the sockets close, and what they left is applied")
  func stop() async throws {
    try await ServiceFixture.with { service in
      try await service.withPort { port, group in
        try await ServiceFixture.withSocket(port: port) { client in
          let set = try await client.request("o", #"{"p":"/gone","d":true}"#)
          #expect(try await client.receive(1) == [ok(set)])
          await group.triggerGracefulShutdown()
          #expect(try await client.receive() == nil)
        }
      }
      try await service.waitFor("gone", "true")
    }
  }

  // MARK: - Identity

  @Test("A client signs in and out; a bad token is refused")
  func authentication() async throws {
    try await withSocket { _, _, client in
      let auth = try await client.request("auth", #"{"cred":"\#(ServiceFixture.token)"}"#)
      #expect(
        try await client.receive(1) == [
          ok(
            auth,
            #"{"auth":{"uid":"u","token":{"sub":"u","exp":1700000100}},"expires":1700000100}"#
          )
        ]
      )
      let out = try await client.request("unauth", "{}")
      #expect(try await client.receive(1) == [ok(out, #""unauthenticated""#)])
      let owner = try await client.request("gauth", #"{"cred":"owner","authvar":{"uid":"x"}}"#)
      #expect(try await client.receive(1) == [ok(owner, #"{"auth":{}}"#)])
      let bad = try await client.request("auth", #"{"cred":"a.b.c"}"#)
      #expect(
        try await client.receive(1) == [
          failure(bad, "invalid_token", "Could not parse auth token.")
        ]
      )
      for action in ["appcheck", "unappeck", "s"] {
        let number = try await client.request(action, "{}")
        #expect(try await client.receive(1) == [ok(number)])
      }
    }
  }

  @Test("A token that expires is taken back")
  func expiry() async throws {
    try await withSocket { service, _, client in
      try await client.request("auth", #"{"cred":"\#(ServiceFixture.token)"}"#)
      _ = try await client.receive(1)
      service.time.advance(by: .seconds(101))
      await service.clock.waitForSleepers()
      service.clock.advance(by: .seconds(5))
      #expect(
        try await client.receive(1) == [
          #"{"t":"d","d":{"a":"ac","b":{"s":"expired_token","d":"Auth token is expired"}}}"#
        ]
      )
    }
  }

  @Test("Rules refuse what they do not allow, and take listeners back")
  func permissions() async throws {
    try await withSocket { service, _, client in
      try await service.setRules(
        #"{"rules":{"users":{"$u":{".read":"auth.uid === $u",".write":"auth.uid === $u"}}}}"#
      )
      for (action, body) in [
        ("q", #"{"p":"/users/u","h":""}"#), ("g", #"{"p":"/users/u"}"#),
        ("p", #"{"p":"/users/u","d":1}"#), ("m", #"{"p":"/users","d":{"u":1}}"#),
        ("o", #"{"p":"/users/u","d":1}"#),
      ] {
        let number = try await client.request(action, body)
        let refusal = failure(number, "permission_denied", "Permission denied")
        #expect(try await client.receive(1) == [refusal])
      }
      try await client.request("auth", #"{"cred":"\#(ServiceFixture.token)"}"#)
      _ = try await client.receive(1)
      let listen = try await client.request("q", #"{"p":"/users/u","h":""}"#)
      #expect(try await client.receive(2).last == ok(listen, "{}"))
      let query = try await client.request(
        "q",
        #"{"p":"/users/u","q":{"sp":1,"sin":true,"l":2,"vf":"l"},"t":1,"h":""}"#
      )
      #expect(try await client.receive(2).last == ok(query, "{}"))
      let out = try await client.request("unauth", "{}")
      let messages = try await client.receive(3)
      #expect(messages.contains(#"{"t":"d","d":{"a":"c","b":{"p":"users/u"}}}"#))
      #expect(messages.contains { $0.contains(#""q":[{"sp":1,"sin":true,"l":2,"vf":"l"}]"#) })
      #expect(messages.contains(ok(out, #""unauthenticated""#)))
    }
  }

  @Test("A query without an index is warned about by a listener, and refused by a read")
  func missingIndex() async throws {
    try await withSocket { service, _, client in
      try await service.setRules(#"{"rules":{".read":true}}"#)
      let query = #"{"p":"/a","q":{"i":"s","l":1,"vf":"l"}"#
      let listen = try await client.request("q", query + #","t":1,"h":""}"#)
      #expect(try await client.receive(2).last == ok(listen, #"{"w":["no_index"]}"#))
      let get = try await client.request("g", query + "}")
      let refusal = try await client.receive(1)[0]
      #expect(refusal.hasPrefix(#"{"t":"d","d":{"r":\#(get),"b":{"s":"failed","d":"Index not"#))
    }
  }

  // MARK: - Pieces and bounds

  @Test("Long messages go in pieces, both ways")
  func pieces() async throws {
    try await withSocket { _, _, client in
      let text = String(repeating: "a€😀", count: 30_000)
      let message = Array(#"{"t":"d","d":{"r":1,"a":"p","b":{"p":"/long","d":"\#(text)"}}}"#.utf8)
      let size = 30_000
      let count = (message.count + size - 1) / size
      try await client.send(String(count))
      for index in 0..<count {
        let end = min(message.count, (index + 1) * size)
        try await client.sendFrame(Array(message[(index * size)..<end]))
      }
      #expect(try await client.receive(1) == [ok(1)])
      try await client.send(#"{"t":"d","d":{"r":2,"a":"g","b":{"p":"/long"}}}"#)
      let number = try #require(Int(try await client.receive(1)[0]))
      let pieces = try await client.receive(number)
      #expect(pieces.allSatisfy { $0.utf16.count <= 16_384 })
      #expect(pieces.joined() == ok(2, "\"\(text)\""))
    }
  }

  @Test("A message beyond the limit is refused, and the socket goes on")
  func tooLong() async throws {
    try await withSocket { _, _, client in
      let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 60_000)
      try await client.send("300")
      try await client.send(#"{"t":"d","d":{"r":9,"a":"p","b":{"p":"/long","d":""#)
      for _ in 1..<300 { try await client.sendFrame(piece) }
      let refusal = try await client.receive(1)[0]
      #expect(refusal.hasPrefix(#"{"t":"d","d":{"r":9,"b":{"s":"too_big","d":"#))
      let next = try await client.request("s", "{}")
      #expect(try await client.receive(1) == [ok(next)])
    }
  }

  @Test("Bad messages get an answer, and never an end")
  func badMessages() async throws {
    try await withSocket { _, _, client in
      for text in ["{", "[1]", "nonsense", #"{"t":"d","d":{"a":"p"}}"#] {
        try await client.send(text)
        #expect(
          try await client.receive(1) == [#"{"t":"c","d":{"t":"e","d":"Invalid message"}}"#]
        )
      }
      let path = "Invalid path: Invalid token in path"
      let requests = [
        ("zz", "{}", "Unknown action"), ("q", #"{"p":"/a.b"}"#, path), ("q", "[]", path),
        ("p", #"{"p":5,"d":1}"#, path), ("o", #"{"p":"/.info/x","d":1}"#, path),
        (
          "m", #"{"p":"/a","d":1}"#,
          "Invalid data; couldn't parse JSON object. "
            + "Are you sending a JSON object with valid key names?"
        ),
        ("p", #"{"p":"/a","d":{".sv":"x"}}"#, "Invalid data; an unknown server value."),
        ("q", #"{"p":"/a","q":{"sp":[]}}"#, "Constraint index field must be a JSON primitive"),
      ]
      for (action, body, message) in requests {
        let number = try await client.request(action, body)
        #expect(try await client.receive(1) == [failure(number, "failed", message)])
      }
    }
  }

  @Test(
    "Frames that no client sends end the socket",
    arguments: [
      (2, "binary"), (1, "10000"), (1, String(repeating: "x", count: 70_000)),
    ] as [(UInt8, String)]
  )
  func badFrames(opcode: UInt8, text: String) async throws {
    try await withSocket { _, _, client in
      _ = try await client.receive()
      try await client.sendFrame(Array(text.utf8), opcode: opcode)
      #expect(try await client.receive() == nil)
    }
  }

  @Test("Fragments of a frame belong together")
  func fragments() async throws {
    try await withSocket { _, _, client in
      let text = Array(#"{"t":"c","d":{"t":"p","d":{}}}"#.utf8)
      try await client.sendFrame(Array(text[..<10]), isFinal: false)
      try await client.sendFrame(Array(text[10...]), opcode: 0)
      #expect(try await client.receive(1)[0].contains(#""t":"o""#))
    }
  }

  @Test("A client that never reads is disconnected, and others go on")
  func neverReads() async throws {
    try await withSocket { service, port, client in
      let listen = try await client.request("q", #"{"p":"/big","h":""}"#)
      #expect(try await client.receive(2).last == ok(listen, "{}"))
      try await ServiceFixture.withSocket(port: port) { other in
        try await other.request("q", #"{"p":"/small","h":""}"#)
        _ = try await other.receive(2)
        let value = "\"" + String(repeating: "x", count: 4 << 20) + "\""
        for number in 0..<20 where service.service.clientsCount == 2 {
          let body = number % 2 == 0 ? value : "1"
          _ = try await service.send(.put, "/big.json?ns=test&print=silent", body)
          _ = try await service.send(.put, "/small.json?ns=test&print=silent", "\(number)")
          #expect(try await other.receive(1) == [push("d", "small", "\(number)")])
        }
        await eventually("the client is disconnected") { service.service.clientsCount == 1 }
      }
    }
  }

  @Test("A value that does not fit in the memory for all clients ends the socket only")
  func memory() async throws {
    let budget = TransferBudget(
      bytesMax: 1 << 20,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    )
    try await withSocket(budget: budget) { service, _, client in
      let listen = try await client.request("q", #"{"p":"/big","h":""}"#)
      #expect(try await client.receive(2).last == ok(listen, "{}"))
      let value = "\"" + String(repeating: "x", count: 2 << 20) + "\""
      #expect(try await service.send(.put, "/big.json?ns=test", value).status == 200)
      await eventually("the client is disconnected") { service.service.clientsCount == 0 }
      await eventually("its memory is free") { budget.heldBytes == 0 }
    }
  }

  @Test("Many requests at once are all answered, in their order")
  func manyRequests() async throws {
    try await withSocket { _, _, client in
      for number in 1...2000 {
        try await client.send(
          #"{"t":"d","d":{"r":\#(number),"a":"p","b":{"p":"/n","d":\#(number)}}}"#
        )
      }
      #expect(try await client.receive(2000) == (1...2000).map { ok($0) })
    }
  }

  // MARK: - From long polling

  @Test("A session that began with long polling goes on here, with nothing lost or repeated")
  func upgrade() async throws {
    try await ServiceFixture.with { service in
      let start = try await service.send(.get, "/.lp?start=t&cb=1&v=5&ns=test", "", [:])
      let match = try #require(start.body.firstMatch(of: #/'start','(\w+)','(\w+)'/#))
      let poll = "/.lp?id=\(match.1)&pw=\(match.2)&ns=test"
      var segment = 0
      func say(_ message: String) async throws -> String {
        let text = Data(message.utf8).base64EncodedString().replacing("=", with: ".")
        defer { segment += 1 }
        return try await service.send(.get, "\(poll)&seg0=\(segment)&ts0=1&d0=\(text)", "", [:])
          .body
      }
      let left = #"{"t":"d","d":{"r":1,"a":"o","b":{"p":"/gone","d":true}}}"#
      #expect(try await say(left).contains(ok(1)))
      let listen = #"{"t":"d","d":{"r":2,"a":"q","b":{"p":"/n","h":""}}}"#
      var heard = try await say(listen)
      if !heard.contains(ok(2, "{}")) { heard = try await service.send(.get, poll, "", [:]).body }
      #expect(heard.contains(ok(2, "{}")))
      try await service.withPort { port, _ in
        try await ServiceFixture.withSocket(port: port, "/.ws?v=5&ns=test&s=\(match.1)") { client in
          #expect(try await client.receive() == #"{"t":"c","d":{"t":"a","d":{}}}"#)
          try await client.send(#"{"t":"c","d":{"t":"p","d":{}}}"#)
          #expect(try await client.receive() == #"{"t":"c","d":{"t":"o","d":{}}}"#)
          try await client.send(#"{"t":"c","d":{"t":"a","d":{}}}"#)
          // What the client sends here waits until its last segment has arrived.
          try await client.send(#"{"t":"d","d":{"r":3,"a":"p","b":{"p":"/n","d":3}}}"#)
          let end = try await say(#"{"t":"c","d":{"t":"n","d":{}}}"#)
          #expect(end.contains(#"{"t":"c","d":{"t":"n","d":{}}}"#))
          #expect(try await client.receive(2).last == ok(3))
          // The session belongs to the socket alone.
          _ = try await service.send(.get, poll + "&disconn=t", "", [:])
          #expect(try await service.value("gone") == "null")
        }
        try await service.waitFor("gone", "true")
        try await ServiceFixture.withSocket(port: port, "/.ws?v=5&ns=test&s=none") { client in
          let reset = try await client.receive()
          #expect(reset?.contains(#""t":"r""#) == true)
        }
      }
    }
  }
}
