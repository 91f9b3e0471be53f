import DatabaseClient
import DatabaseTree
import EventLog
import HTTPSupport
import Logging
import OutboundHTTP
import RealtimeDatabaseEmulator
import ServiceLifecycle
import StorageEngine
import Synchronization
import TestSupport
import Testing

@Suite("Client against the Realtime Database of the suite", .timeLimit(.minutes(2)))
struct LiveDatabaseTests {
  private struct Score: Codable, Sendable, Equatable {
    var name: String
    var points: Int
    var tags: [String]?
  }

  /// A sign that one task sets for another.
  private final class Flag: Sendable {
    private let flag = Mutex(false)

    func set() { flag.withLock { $0 = true } }
    var isSet: Bool { flag.withLock { $0 } }
  }

  /// Runs `body` with a client of a database that listens on a port of its own.
  static func with(_ body: @escaping @Sendable (Database) async throws -> Void) async throws {
    let storage = MemoryStorage()
    let wallClock = WallClock()
    let database = RealtimeDatabase(
      storage: storage,
      tailer: EventTailer(storage: storage, logger: .silent),
      project: "demo-test",
      now: { wallClock.now() },
      captureDepth: { _, _ in nil },
      logger: .silent
    )
    let service = RealtimeDatabaseService(database: database, logger: .silent)
    let (addresses, listening) = AsyncStream<ServerAddress>.makeStream()
    let http = HTTPService(
      address: .tcp(host: "127.0.0.1", port: 0),
      logger: .silent,
      onListening: { listening.yield($0) },
      onQuiesce: { service.endAll() },
      upgrader: service.upgrader
    ) { request, _ in await service.respond(to: request) }
    let group = ServiceGroup(
      configuration: .init(
        services: [.init(service: database), .init(service: http)],
        logger: .silent
      )
    )
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      tasks.addTask { try await group.run() }
      guard let port = await addresses.first(where: { _ in true })?.port else { return }
      do {
        try await body(Database(DatabaseSettings(url: "http://127.0.0.1:\(port)?ns=demo-test")))
      } catch {
        tasks.cancelAll()
        throw error
      }
      await group.triggerGracefulShutdown()
      try await tasks.waitForAll()
    }
  }

  @Test("What is written is read, changed, queried and deleted")
  func values() async throws {
    try await Self.with { database in
      let scores = database.reference("scores")
      let tina = Score(name: "Tina", points: 3, tags: ["a", "b"])
      try await scores.child("tina").set(tina)
      let carl = try await scores.push(Score(name: "Carl", points: 5))
      #expect(try await scores.child("tina").get().data() == tina)
      try await scores.update([
        "tina/points": ServerValue.increment(4), "tina/tags": nil, "\(carl.key ?? "")/name": "Karl",
      ])
      #expect(try await scores.child("tina").get().data() == Score(name: "Tina", points: 7))

      let first = try await scores.queryOrderedByKey().queryLimited(toFirst: 1).get()
      #expect(first.children.count == 1 && first.children[0].key == carl.key)
      try await scores.remove()
      #expect(try await scores.get().exists == false)
    }
  }

  @Test("Transactions of many lose no change")
  func transactions() async throws {
    try await Self.with { database in
      let count = database.reference("count")
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<8 {
          group.addTask { try await count.transaction { (number: Int?) in (number ?? 0) + 1 } }
        }
        try await group.waitForAll()
      }
      #expect(try await count.get().data() == 8)
    }
  }

  @Test("A listener has the value after each change")
  func observe() async throws {
    try await Self.with { database in
      let place = database.reference("typing/c1")
      var seen: [[String: Bool]?] = []
      for try await snapshot in place.observe() {
        seen.append(try snapshot.data())
        switch seen.count {
        case 1: try await place.child("a").set(true)
        case 2: try await place.update(["a": nil, "b": false])
        case 3: try await place.remove()
        default: break
        }
        if seen.count == 4 { break }
      }
      #expect(seen == [nil, ["a": true], ["b": false], nil])
    }
  }

  @Test("The end of a connection is what the server makes of it, with its own time")
  func disconnect() async throws {
    try await Self.with { database in
      let me = database.reference("presence/tina")
      let isThere = Flag()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          try await database.whileConnected { connection in
            try await connection.onDisconnect(
              update: me,
              with: ["online": false, "lastSeen": ServerValue.timestamp, "device": nil]
            )
            try await connection.set(me, to: ["online": true, "device": "phone"])
            isThere.set()
          }
        }
        await eventually("the client is there") { isThere.isSet }
        let isOnline: Bool = try await me.child("online").get().data()
        #expect(isOnline)
        group.cancelAll()
      }
      try await eventually("the server has noticed") {
        try await me.child("online").get().data() == false
      }
      let value = try await me.get()
      #expect(try value.child("lastSeen").data(Double.self) > 1_000_000)
      #expect(!value.child("device").exists)
    }
  }

  @Test("A value in many pieces comes through a lasting connection")
  func pieces() async throws {
    try await Self.with { database in
      let text = String(repeating: "ä😀", count: 30_000)
      let place = database.reference("long")
      let isDone = Flag()
      await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          try await database.whileConnected { connection in
            try await connection.set(place, to: text)
            isDone.set()
          }
        }
        await eventually("the value is written") { isDone.isSet }
        group.cancelAll()
      }
      let read: String = try await place.get().data()
      #expect(read == text)
    }
  }
}
