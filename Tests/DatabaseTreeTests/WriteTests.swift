import DatabaseModel
import DatabaseRules
import EventLog
import Events
import Identity
import StorageEngine
import Testing

@testable import DatabaseTree

@Suite("Writes to the Realtime Database")
struct WriteTests {
  @Test("A set replaces what is below, and null deletes with the ancestors that lose all")
  func set() async throws {
    try await DatabaseFixture.with { database in
      try await database.set("a", #"{"b":{"c":1},"d":[1,null,"x"],".priority":"p"}"#)
      #expect(
        try await database.json("/") == #"{"a":{".priority":"p","b":{"c":1},"d":{"0":1,"2":"x"}}}"#
      )
      try await database.set("a/d", "true")
      try await database.set("a/b/c", "null")
      #expect(try await database.json("a") == #"{".priority":"p","d":true}"#)
      try await database.set("a/d", "{}")
      #expect(try await database.json("/") == "null")
      // The priority went with the object.
      try await database.set("a/x", "1")
      #expect(try await database.json("a") == #"{"x":1}"#)
    }
  }

  @Test("Writing below a leaf makes it an object with the same priority; deleting there does not")
  func belowLeaf() async throws {
    try await DatabaseFixture.with { database in
      try await database.set("a", #"{".value":"leaf",".priority":3}"#)
      try await database.set("a/b/c", "null")
      #expect(try await database.json("a") == #"{".priority":3,".value":"leaf"}"#)
      try await database.set("a/b/c", "2")
      #expect(try await database.json("a") == #"{".priority":3,"b":{"c":2}}"#)
      let priority = DatabaseWrite(
        .setPriority(.at("a"), DatabaseInput(DatabaseNode(.string("q"))))
      )
      try await database.instance.write(priority, as: .admin)
      #expect(try await database.json("a") == #"{".priority":"q","b":{"c":2}}"#)
      let none = DatabaseWrite(.setPriority(.at("a"), DatabaseInput(.empty)))
      try await database.instance.write(none, as: .admin)
      #expect(try await database.json("a") == #"{"b":{"c":2}}"#)
      let absent = DatabaseWrite(.setPriority(.at("z"), DatabaseInput(DatabaseNode(.string("q")))))
      try await database.instance.write(absent, as: .admin)
      #expect(try await database.json("z") == "null")
    }
  }

  @Test("An update replaces several places at once, and its paths may not contain one another")
  func merge() async throws {
    try await DatabaseFixture.with { database in
      try await database.set("a", #"{"x":1,"y":{"z":2},"k":3}"#)
      try await database.instance.write(
        .merge("a", ["x": "null", "y/w": #"{"v":5}"#, "n": "7"]),
        as: .admin
      )
      #expect(try await database.json("a") == #"{"k":3,"n":7,"y":{"w":{"v":5},"z":2}}"#)
      for overlapping in [["y": "1", "y/w": "2"], ["y/w/v": "1", "y/w": "2", "b": "3"]] {
        await #expect(throws: DatabaseError.self) {
          try await database.instance.write(.merge("a", overlapping), as: .admin)
        }
      }
      #expect(try await database.json("a/n") == "7")
    }
  }

  @Test("Server values are resolved when the write is applied")
  func serverValues() async throws {
    try await DatabaseFixture.with { database in
      try await database.set("count", "41")
      let many = (0..<20).map { _ in #"{".sv":{"increment":1}}"# }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for json in many { group.addTask { try await database.set("count", json) } }
        try await group.waitForAll()
      }
      #expect(try await database.json("count") == "61")
      try await database.set(
        "t",
        #"{"at":{".sv":"timestamp"},"n":{".value":1,".priority":{".sv":"timestamp"}}}"#
      )
      #expect(
        try await database.json("t")
          == #"{"at":1700000000123,"n":{".priority":1700000000123,".value":1}}"#
      )
      try await database.set("text", #""x""#)
      try await database.set("text", #"{".sv":{"increment":2.5}}"#)
      #expect(try await database.json("text") == "2.5")
    }
  }

  @Test("A transaction with the hash of another value is refused")
  func condition() async throws {
    try await DatabaseFixture.with { database in
      try await database.set("n", "1")
      var write = try DatabaseWrite.set("n", "2")
      write.condition = .hash("")
      await #expect(throws: DatabaseError.stale) {
        try await database.instance.write(write, as: .admin)
      }
      write.condition = .hash("YPVfR2bXt/lcDjiQZ8pOkAd3qkQ=")
      try await database.instance.write(write, as: .admin)
      #expect(try await database.json("n") == "2")
    }
  }

  @Test("What a client may not read, no update, condition or key tells it, or ends the process")
  func oracles() async throws {
    try await DatabaseFixture.with { database in
      let rules = #"{"rules":{"drop":{"$k":{".write":true}},"open":{".read":true}}}"#
      await database.instance.setRules(try DatabaseRuleset(parsing: rules))
      try await database.set("secret", #""1234""#)
      try await database.set("drop/a", "1")
      await #expect(throws: DatabaseError.permissionDenied) {
        try await database.instance.write(.merge("secret", [:]), as: .nobody, returnsNode: true)
      }
      let dropped = try await database.instance.write(
        .merge("drop", ["m": "1"]),
        as: .nobody,
        returnsNode: true
      )
      #expect(dropped == .empty)
      var guess = try DatabaseWrite.set("drop/a", "2")
      guess.condition = .hash("YPVfR2bXt/lcDjiQZ8pOkAd3qkQ=")
      await #expect(throws: DatabaseError.permissionDenied) {
        try await database.instance.write(guess, as: .nobody)
      }
      let long = DatabaseKey(String(repeating: "0", count: 70_000) + "1")
      let query = DatabaseQuery(order: .key, start: .init(.null, key: .key(long)))
      let found = try await database.instance.read(.at("open"), query: query, as: .nobody)
      #expect(found == .empty)
      try await database.set("open/n", "1.7e308")
      try await database.set("open/n", #"{".sv":{"increment":1.7e308}}"#)
      #expect(try await database.json("open/n") == "1.7976931348623157e+308")
    }
  }

  @Test("A commit has the changes for functions at the node that is captured, each once")
  func events() async throws {
    let writer = DatabaseCaller(.user(UserIdentity(uid: "ann", claimsJSON: #"{"sub":"ann"}"#)))
    try await DatabaseFixture.with(captureDepth: { $0.keys.first == "no" ? nil : 1 }) { database in
      try await database.set("chats/a/text", #""hi""#)
      try await database.instance.write(
        .merge("/", ["chats/a/x": "1", "chats/b": "[true]", "no/c": "2", "users/u": "3"]),
        as: writer
      )
      try await database.set("chats/a/text", #""hi""#)
      try await database.set("no/d", "4")
      var silent = try DatabaseWrite.set("chats", "null")
      silent.disablesTriggers = true
      try await database.instance.write(silent, as: .admin)

      let records = try await database.storage.read {
        try CommitLog.records(after: 0, limit: 10, in: $0)
      }
      let texts = records.map { record in
        record.occurrences.map { occurrence in
          guard case .value(let change) = occurrence else { return "\(occurrence)" }
          return [change.before, change.after].map { String(decoding: $0, as: UTF8.self) }
            .joined(separator: " -> ") + " at \(change.path)"
        }
      }
      #expect(
        texts == [
          [#"null -> {"a":{"text":"hi"}} at ["chats"]"#],
          [
            #"{"a":{"text":"hi"}} -> {"a":{"text":"hi","x":1},"b":{"0":true}} at ["chats"]"#,
            #"null -> {"u":3} at ["users"]"#,
          ],
        ]
      )
      #expect(records.map(\.auth) == [.admin, writer.auth])
    }
  }

  @Test("A path and a value together may be 32 keys deep")
  func depth() async throws {
    try await DatabaseFixture.with { database in
      let path = (0..<31).map { "k\($0)" }.joined(separator: "/")
      try await database.set(path, #"{"last":1}"#)
      await #expect(throws: DatabaseError.self) {
        try await database.set(path, #"{"last":{"beyond":1}}"#)
      }
    }
  }
}

@Suite("Hashes of the Realtime Database")
struct HashTests {
  @Test(
    "They are those of Firebase's clients",
    arguments: [
      ("true", "E5z61QM0lN/U2WsOnusszCTkR8M="),
      ("0", "7ysMph9WPitGP7poMnMHMVPtUlI="),
      ("-0", "m/gA365Q5OBo06Bg8wdybAAiMSQ="),
      ("1", "YPVfR2bXt/lcDjiQZ8pOkAd3qkQ="),
      (#""Hello World""#, "B8HWXc7zXMjrsnJxPRj7wrNGqt4="),
      (#"{"foo":"bar"}"#, "XnLeTeWQmzTHImTbSMDLg/qMrKY="),
      (#"{"10":1,"9":2,"a":3}"#, "m2yjQlTp8QU+bhHk6ou4o/HIgZ0="),
      (#"{".value":42,".priority":"high"}"#, "d/2FMFWchvDsa06RLXZhzvM9aQc="),
      (#"{"someKey":"value",".priority":128.256}"#, "WYR8kBGna+a7E5x75zvhPhzACOQ="),
      (
        #"{"a":{".value":1,".priority":2},"b":{".value":2,".priority":1}}"#,
        "/3lk7Vfl5OYG6Kw2SkiPXNeExPw="
      ),
      (#"{"é":"ü😀"}"#, "7o8Sb/g3UlnNMC0Bv+94s8F7Aic="),
      ("null", ""),
    ]
  )
  func vectors(json: String, hash: String) throws {
    #expect(try DatabaseInput(parsing: Array(json.utf8)).node.clientHash == hash)
  }
}
