import DatabaseModel
import Logging
import SQLiteStorage
import StorageEngine
import Synchronization
import TestSupport
import Testing

@testable import DatabaseTree

/// Random writes, transactions, listeners with queries, disconnects and restarts, beside a tree in
/// memory.
@Suite("The Realtime Database against a model", .serialized)
struct DatabaseGameTests {
  @Test("Every listener's view is its query of the model, over the engine in memory")
  func memory() async throws {
    let storage = MemoryStorage()
    try await play { storage }
  }

  @Test("Every listener's view is its query of the model if all first values are long reads")
  func longReads() async throws {
    let storage = SlowStorage(seed: SeededGenerator.forTest().seed)
    try await play(shortReadBytesMax: 0) { storage }
  }

  @Test("Every listener's view is its query of the model, over SQLite, which is closed in between")
  func sqlite() async throws {
    let folder = try TemporaryFolder()
    var open: SQLiteStore?
    try await play {
      try await open?.close()
      let store = try SQLiteStore(
        folder: folder.path,
        configuration: .init(isDurable: false),
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      )
      open = store
      return store
    }
    try await open?.close()
  }

  private func play(
    shortReadBytesMax: Int = 1 << 20,
    _ open: () async throws -> any OrderedStorage
  ) async throws {
    var generator = SeededGenerator.forTest()
    var model = DatabaseNode.empty
    for _ in RandomRounds(share: 1, atLeast: 10) {
      let storage = try await open()
      let (seed, before) = (generator.next(), model)
      model = try await DatabaseFixture.with(storage, shortReadBytesMax: shortReadBytesMax) {
        database in
        var game = DatabaseGame(seed: seed, model: before, database: database)
        for _ in 0..<60 { try await game.play() }
        try await game.check()
        return game.afterRestart
      }
    }
  }
}

/// One process's part of the game.
private struct DatabaseGame {
  private let database: DatabaseFixture
  private var generator: SeededGenerator
  private(set) var model: DatabaseNode
  private var clients: [Client] = []
  private var isChecked = true

  /// A client with what it has received, and what it leaves for its disconnection.
  private final class Client: Sendable {
    let views = Mutex<[Int: View]>([:])
    let opened = Mutex<DatabaseSession?>(nil)
    let left = Mutex<[(DatabasePath, DatabaseNode)]>([])
    let failures = Mutex<[String]>([])
    let asked = Mutex<UInt64>(1000)
    let answered = Mutex<UInt64>(0)

    struct View {
      var path: DatabasePath
      var query: DatabaseQuery?
      var node = DatabaseNode.empty
    }

    func receive(_ event: DatabaseSessionEvent) {
      switch event {
      case .value(let path, let node, let tag): apply([(path, node.node)], tag)
      case .merge(let path, let members, let tag):
        apply(members.members.map { (path.appending($0.path), $0.node) }, tag)
      case .reply(_, .failure(let error)): failures.withLock { $0.append("\(error)") }
      case .reply(let number, .success): answered.withLock { $0 = number }
      case .revoked: break
      }
    }

    /// Applies an event as Firebase's clients do: to the listener with its tag.
    private func apply(_ changes: [(DatabasePath, DatabaseNode)], _ tag: Int?) {
      views.withLock { views in
        guard let tag, var view = views[tag] else { return }
        for (path, node) in changes {
          if path.keys.last == ".priority" {
            view.node.setPriority(node.leaf, at: path.parent.dropFirst(view.path.count))
          } else {
            view.node.set(node, at: path.dropFirst(view.path.count))
          }
        }
        views[tag] = view
      }
    }
  }

  init(seed: UInt64, model: DatabaseNode, database: DatabaseFixture) {
    generator = SeededGenerator(seed: seed)
    self.model = model
    self.database = database
  }

  /// The tree when the next process has begun: what all clients have left is applied.
  ///
  /// Sessions are in the order of their numbers, which is that of their opening.
  var afterRestart: DatabaseNode {
    var node = model
    for client in clients {
      for (path, value) in client.left.withLock({ $0 }) { node.set(value, at: path) }
    }
    return node
  }

  mutating func play() async throws {
    switch Int.random(in: 0..<20, using: &generator) {
    case 0..<9: try await write()
    case 9..<11: try await merge()
    case 11: try await transaction()
    case 12: try await increment()
    case 13: try await setPriority()
    case 14: open()
    case 15: leave()
    case 16: disconnect()
    default: listen()
    }
    // Without a check the next operation comes while long reads may be going on.
    isChecked = Bool.random(using: &generator)
    if isChecked { try await check() }
  }

  private mutating func write() async throws {
    let (path, node) = (randomPath(), randomNode(depth: 2))
    // A client's requests wait for its long reads, so a later write could overtake this one.
    if let client = clients.randomElement(using: &generator), isChecked {
      client.opened.withLock { $0 }?.write(1, DatabaseWrite(.set(path, DatabaseInput(node))))
    } else {
      try await database.instance.write(DatabaseWrite(.set(path, DatabaseInput(node))), as: .admin)
    }
    model.set(node, at: path)
  }

  private mutating func merge() async throws {
    let base = randomPath()
    var members: [DatabaseWrite.Member] = []
    for key in Self.keys.shuffled(using: &generator).prefix(3) {
      let deeper = Bool.random(using: &generator) ? [key, "a"] : [key]
      let value = DatabaseInput(randomNode(depth: 1))
      members.append(DatabaseWrite.Member(path: DatabasePath(deeper), value: value))
    }
    try await database.instance.write(DatabaseWrite(.merge(base, members)), as: .admin)
    for member in members { model.set(member.value.node, at: base.appending(member.path)) }
  }

  private mutating func transaction() async throws {
    let (path, node) = (randomPath(), randomNode(depth: 1))
    var write = DatabaseWrite(.set(path, DatabaseInput(node)))
    let isStale = Bool.random(using: &generator)
    let hash = model.node(at: path).clientHash
    write.condition = .hash(isStale ? hash + "x" : hash)
    if isStale {
      await #expect(throws: DatabaseError.stale) {
        try await database.instance.write(write, as: .admin)
      }
    } else {
      try await database.instance.write(write, as: .admin)
      model.set(node, at: path)
    }
  }

  private mutating func increment() async throws {
    let path = randomPath()
    let placed = DatabaseInput.Placed(path: .root, isPriority: false, value: .increment(1))
    try await database.instance.write(
      DatabaseWrite(.set(path, DatabaseInput(.empty, serverValues: [placed]))),
      as: .admin
    )
    var number = 1.0
    if case .number(let before)? = model.leaf(at: path) { number += before }
    model.set(DatabaseNode(.number(number)), at: path)
  }

  private mutating func setPriority() async throws {
    let path = randomPath()
    let priority = Bool.random(using: &generator) ? randomPriority() : nil
    let input = DatabaseInput(priority.map { DatabaseNode($0) } ?? .empty)
    try await database.instance.write(DatabaseWrite(.setPriority(path, input)), as: .admin)
    model.setPriority(priority, at: path)
  }

  private mutating func open() {
    guard clients.count < 4 else { return }
    let client = Client()
    let session = database.instance.open(as: .admin) { client.receive($0) }
    client.opened.withLock { $0 = session }
    clients.append(client)
  }

  private mutating func listen() {
    guard let client = clients.randomElement(using: &generator) else { return open() }
    let tag = Int.random(in: 0..<1_000_000, using: &generator)
    let view = Client.View(path: randomPath(), query: randomQuery())
    client.views.withLock { views in
      // A listener takes the place of an earlier one with the same path and query.
      for (tag, other) in views where other.path == view.path && other.query == view.query {
        views[tag] = nil
      }
      views[tag] = view
    }
    client.opened.withLock { $0 }?.listen(2, view.path, query: view.query, tag: tag, hash: nil)
  }

  private mutating func leave() {
    guard let client = clients.randomElement(using: &generator) else { return }
    let (path, node) = (randomPath(), randomNode(depth: 1))
    client.opened.withLock { $0 }?.onDisconnect(3, DatabaseWrite(.set(path, DatabaseInput(node))))
    client.left.withLock { left in
      left.removeAll { $0.0.starts(with: path) }
      left.append((path, node))
    }
  }

  private mutating func disconnect() {
    guard let index = clients.indices.randomElement(using: &generator) else { return }
    let client = clients.remove(at: index)
    client.opened.withLock { $0 }?.close()
    for (path, value) in client.left.withLock({ $0 }) { model.set(value, at: path) }
  }

  func check() async throws {
    // A write comes after everything before it, and changes nothing. A session answers its requests
    // in order, also after long reads.
    try await database.instance.write(try .merge("/", [:]), as: .admin)
    for client in clients {
      let number = client.asked.withLock { asked in
        asked += 1
        return asked
      }
      client.opened.withLock { $0 }?.unlisten(number, .root, query: DatabaseQuery(order: .value))
      await eventually("the client is answered") { client.answered.withLock { $0 == number } }
    }
    let stored = try await database.instance.read(.root, as: .admin)
    try #require(text(stored) == text(model))
    for client in clients {
      try #require(client.failures.withLock { $0 } == [])
      for view in client.views.withLock({ Array($0.values) }) {
        let node = model.node(at: view.path)
        let expected = view.query.map { $0.apply(to: node) } ?? node
        let name = "\(view.path) \(view.query.map { "\($0)" } ?? "")"
        // The events of a query do not tell the priority of the queried node itself.
        try #require(
          text(view.node.with(priority: nil)) == text(expected.with(priority: nil)),
          "\(name)"
        )
        if let query = view.query {
          let read = try await database.instance.read(view.path, query: query, as: .admin)
          try #require(text(read) == text(expected), "\(name)")
        }
      }
    }
  }

  private func text(_ node: DatabaseNode) -> String {
    String(decoding: node.json(.export), as: UTF8.self)
  }

  // MARK: Random values

  private static let keys = ["a", "b", "1", "10", "9", "é", "e\u{301}"]

  private mutating func randomPath() -> DatabasePath {
    let depth = Int.random(in: 0...3, using: &generator)
    return DatabasePath((0..<depth).map { _ in Self.keys.randomElement(using: &generator) ?? "a" })
  }

  private mutating func randomLeaf() -> DatabaseLeaf {
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: .boolean(Bool.random(using: &generator))
    case 1: .string(["x", "y", "zz"].randomElement(using: &generator) ?? "x")
    default: .number(Double(Int.random(in: -3...3, using: &generator)))
    }
  }

  private mutating func randomPriority() -> DatabaseLeaf {
    Bool.random(using: &generator)
      ? .string("p") : .number(Double(Int.random(in: 0..<3, using: &generator)))
  }

  private mutating func randomNode(depth: Int) -> DatabaseNode {
    let priority = Int.random(in: 0..<4, using: &generator) == 0 ? randomPriority() : nil
    switch Int.random(in: 0..<5, using: &generator) {
    case 0: return .empty
    case 1,
      2 where depth > 0:
      let children = Self.keys.shuffled(using: &generator).prefix(3).map { key in
        (key, randomNode(depth: depth - 1))
      }
      return DatabaseNode(DatabaseChildren(children), priority: priority)
    default: return DatabaseNode(randomLeaf(), priority: priority)
    }
  }

  private mutating func randomQuery() -> DatabaseQuery? {
    guard Int.random(in: 0..<4, using: &generator) > 0 else { return nil }
    var query = DatabaseQuery()
    let order = Int.random(in: 0..<4, using: &generator)
    query.order = [.key, .value, .priority, .child(DatabasePath(["a"]))][order]
    if Bool.random(using: &generator) { query.start = randomBound(query.order) }
    if Bool.random(using: &generator) { query.end = randomBound(query.order) }
    if Bool.random(using: &generator) {
      query.limit = .init(
        Int.random(in: 1...3, using: &generator),
        isFromEnd: Bool.random(using: &generator)
      )
    }
    return query.selectsAll ? nil : query
  }

  private mutating func randomBound(_ order: DatabaseQuery.Order) -> DatabaseQuery.Bound {
    let key = DatabaseKey(Self.keys.randomElement(using: &generator) ?? "a")
    let isInclusive = Bool.random(using: &generator)
    if order == .key {
      return DatabaseQuery.Bound(.null, key: .key(key), isInclusive: isInclusive)
    }
    let hasKey = Bool.random(using: &generator)
    let isNull = Int.random(in: 0..<5, using: &generator) == 0
    let value = isNull ? IndexValue.null : .leaf(randomLeaf())
    return DatabaseQuery.Bound(value, key: hasKey ? .key(key) : nil, isInclusive: isInclusive)
  }
}
