import DatabaseModel
import DatabaseRules
import StorageEngine
import TestSupport
import Testing

@testable import DatabaseTree

@Suite("Sessions of the Realtime Database")
struct SessionTests {
  @Test(
    "A listener gets the value, then its response, then each write before the writer's response"
  )
  func order() async throws {
    try await DatabaseFixture.with { database in
      try await database.set("a", #"{"b":1}"#)
      let client = RecordedSession(database)
      client.session.listen(1, .at("a"), query: nil, tag: nil, hash: nil)
      client.session.write(2, try .set("a/b", "2"))
      client.session.write(3, try .merge("a", ["c": "3", "d/e": "4"]))
      client.session.write(4, try .set("/", #"{"a":{"x":{"y":0}}}"#))
      client.session.unlisten(5, .at("a"), query: nil)
      client.session.write(6, try .set("a/b", "9"))
      #expect(
        try await client.take(database) == [
          #"d /a {"b":1}"#, "1 listening", "d /a/b 2", "2 ok", #"m /a {"c":3,"d/e":4}"#, "3 ok",
          #"d /a {"x":{"y":0}}"#, "4 ok", "5 ok", "6 ok",
        ]
      )
    }
  }

  @Test("A listener with the hash of the view gets only its response")
  func hash() async throws {
    try await DatabaseFixture.with { database in
      try await database.set("n", "1")
      let client = RecordedSession(database)
      let hash = "YPVfR2bXt/lcDjiQZ8pOkAd3qkQ="
      client.session.listen(1, .at("n"), query: nil, tag: nil, hash: hash)
      client.session.listen(2, .at("other"), query: nil, tag: nil, hash: hash)
      #expect(try await client.take(database) == ["1 listening", "d /other null", "2 listening"])
    }
  }

  @Test("A query with a limit gets what moves into its window and what leaves it, in one event")
  func window() async throws {
    try await DatabaseFixture.with { database in
      try await database.set("s", #"{"a":{"n":1},"b":{"n":2},"c":{"n":3},"d":{"n":4}}"#)
      let client = RecordedSession(database)
      let first = DatabaseQuery(order: .child(.at("n")), limit: .init(2, isFromEnd: false))
      let last = DatabaseQuery(order: .child(.at("n")), limit: .init(1, isFromEnd: true))
      client.session.listen(1, .at("s"), query: first, tag: 7, hash: nil)
      client.session.listen(2, .at("s"), query: last, tag: 8, hash: nil)
      #expect(
        try await client.take(database) == [
          #"d /s {"a":{"n":1},"b":{"n":2}} #7"#, "1 listening", #"d /s {"d":{"n":4}} #8"#,
          "2 listening",
        ]
      )
      try await database.set("s/e", #"{"n":0}"#)
      #expect(try await client.take(database) == [#"m /s {"b":null,"e":{"n":0}} #7"#])
      try await database.set("s/a/n", "9")
      #expect(
        try await client.take(database) == [
          #"m /s {"a":null,"b":{"n":2}} #7"#, #"m /s {"a":{"n":9},"d":null} #8"#,
        ]
      )
      try await database.set("s/b/x", "1")
      #expect(try await client.take(database) == [#"d /s/b {"n":2,"x":1} #7"#])
      try await database.set("s/c/x", "1")
      #expect(try await client.take(database) == [])
      try await database.set("s", "null")
      #expect(try await client.take(database) == ["d /s null #7", "d /s null #8"])
    }
  }

  @Test("After a commit that fails nothing planned on it is stored, and listeners get what is")
  func failedCommit() async throws {
    let storage = FaultyStorage()
    try await DatabaseFixture.with(storage) { database in
      try await database.set("y", #""v""#)
      let client = RecordedSession(database)
      client.session.listen(1, .at("y"), query: nil, tag: nil, hash: nil)
      #expect(try await client.take(database) == [#"d /y "v""#, "1 listening"])
      storage.holdCommits()
      client.session.write(2, try .set("x", "1"))
      await storage.waitForCommits(3)
      // These two form the next round, in which the second is a child of the first.
      client.session.write(3, try .set("y", #"{"o":1}"#))
      client.session.write(4, try .set("y/c", "1"))
      storage.failCommits(with: StorageError(.full, "the disk is full"))
      storage.releaseCommits()
      await eventually("the listener has what is stored") { client.events.last == #"d /y "v""# }
      #expect(
        try await client.take(database) == ["2 ok", "3 unavailable", "4 unavailable", #"d /y "v""#]
      )
      #expect(try await database.json("y") == #""v""#)
      try await database.set("y/c", "2")
      #expect(try await client.take(database) == ["d /y/c 2"])
      #expect(try await database.json("y") == #"{"c":2}"#)
    }
  }

  @Test("A query without an index is warned of, and gets its window like any other")
  func missingIndex() async throws {
    try await DatabaseFixture.with { database in
      await database.instance.setRules(
        try DatabaseRuleset(parsing: #"{"rules":{".read":true,".write":true}}"#)
      )
      try await database.set("s", #"{"a":{"n":1},"b":{"n":2},"c":{"n":3}}"#)
      let client = RecordedSession(database, as: .nobody)
      let query = DatabaseQuery(order: .child(.at("n")), limit: .init(2, isFromEnd: true))
      client.session.listen(1, .at("s"), query: query, tag: 1, hash: nil)
      client.session.get(2, .at("s"), query: query)
      let index = #"Index not defined, add ".indexOn": "n", for path "/s", to the rules"#
      #expect(
        try await client.take(database) == [
          #"d /s {"b":{"n":2},"c":{"n":3}} #1"#, "1 listening \(index)", "2 missingIndex",
        ]
      )
      try await database.set("s/a/n", "4")
      #expect(try await client.take(database) == [#"m /s {"a":{"n":4},"b":null} #1"#])
    }
  }

  @Test("What a client leaves for its disconnection is applied once, in order, when it closes")
  func disconnect() async throws {
    try await DatabaseFixture.with { database in
      let client = RecordedSession(database)
      client.session.onDisconnect(1, try .set("p/online", "false"))
      client.session.onDisconnect(2, try .set("p/lastSeen", #"{".sv":"timestamp"}"#))
      client.session.onDisconnect(3, try .set("q", "1"))
      client.session.onDisconnect(4, try .merge("r", ["a": "1", "b": "2"]))
      client.session.cancelOnDisconnect(5, .at("q"))
      client.session.cancelOnDisconnect(6, .at("r/a"))
      client.session.write(7, try .set("p/online", "true"))
      _ = try await client.take(database)
      #expect(try await database.json("p") == #"{"online":true}"#)
      client.session.close()
      client.session.close()
      client.session.write(8, try .set("late", "1"))
      #expect(try await client.take(database) == [])
      #expect(try await database.json("p") == #"{"lastSeen":1700000000123,"online":false}"#)
      #expect(try await database.json("q") == "null")
      #expect(try await database.json("r") == #"{"b":2}"#)
      #expect(try await database.json("late") == "null")
      let left = try await database.storage.read { try DisconnectRows.instances(in: $0) }
      #expect(left == [])
    }
  }

  @Test("What clients left for their disconnection is applied by the next process")
  func restart() async throws {
    let storage = MemoryStorage()
    try await DatabaseFixture.with(storage) { database in
      let client = RecordedSession(database)
      client.session.onDisconnect(1, try .set("p", #"{"online":false,"at":{".sv":"timestamp"}}"#))
      client.session.write(2, try .set("p", #"{"online":true}"#))
      _ = try await client.take(database)
    }
    try await DatabaseFixture.with(storage) { database in
      // The first request of the new process comes after them.
      try await database.set("x", "1")
      #expect(try await database.json("p") == #"{"at":1700000000123,"online":false}"#)
    }
    try await DatabaseFixture.with(storage) { database in
      try await database.set("p", "1")
      #expect(try await database.json("p") == "1")
    }
  }
}
