import DatabaseModel
import DocumentModel
import EventLog
import Identity
import JSONText
import Logging
import StorageEngine
import Synchronization
import Testing

@testable import DatabaseTree

/// A running database over memory, and what its sessions have received.
final class DatabaseFixture: Sendable {
  let storage: any OrderedStorage
  let database: RealtimeDatabase
  let instance: DatabaseInstance

  private init(
    _ storage: any OrderedStorage,
    shortReadBytesMax: Int,
    captureDepth: @escaping @Sendable (DatabasePath) -> Int?
  ) throws {
    self.storage = storage
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    database = RealtimeDatabase(
      storage: storage,
      tailer: EventTailer(storage: storage, logger: logger),
      project: "demo-test",
      now: { Timestamp(microseconds: 1_700_000_000_123_456) },
      captureDepth: { _, path in captureDepth(path) },
      logger: logger,
      shortReadBytesMax: shortReadBytesMax
    )
    instance = try database.instance("test")
  }

  /// Runs `body` beside a running database.
  static func with<Result: Sendable>(
    _ storage: any OrderedStorage = MemoryStorage(),
    shortReadBytesMax: Int = 1 << 20,
    captureDepth: @escaping @Sendable (DatabasePath) -> Int? = { $0.count },
    _ body: @Sendable (DatabaseFixture) async throws -> Result
  ) async throws -> Result {
    let fixture = try DatabaseFixture(
      storage,
      shortReadBytesMax: shortReadBytesMax,
      captureDepth: captureDepth
    )
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await fixture.database.run() }
      defer { group.cancelAll() }
      return try await body(fixture)
    }
  }

  func set(_ path: String, _ json: String, as caller: DatabaseCaller = .admin) async throws {
    try await instance.write(.set(path, json), as: caller)
  }

  func json(_ path: String, _ query: DatabaseQuery? = nil) async throws -> String {
    let node = try await instance.read(.at(path), query: query, as: .admin)
    return String(decoding: node.json(.export), as: UTF8.self)
  }
}

extension DatabaseCaller {
  static let admin = DatabaseCaller(.admin)
  static let nobody = DatabaseCaller(.unauthenticated)
}

extension DatabasePath {
  static func at(_ text: String) -> DatabasePath {
    guard let path = DatabasePath(parsing: text) else { fatalError("\(text) is no path") }
    return path
  }
}

extension DatabaseWrite {
  static func set(_ path: String, _ json: String) throws -> DatabaseWrite {
    DatabaseWrite(.set(.at(path), try DatabaseInput(parsing: Array(json.utf8))))
  }

  static func merge(_ path: String, _ members: [String: String]) throws -> DatabaseWrite {
    DatabaseWrite(
      .merge(
        .at(path),
        try members.sorted { $0.key < $1.key }.map { key, json in
          DatabaseWrite.Member(
            path: .at(key),
            value: try DatabaseInput(parsing: Array(json.utf8))
          )
        }
      )
    )
  }
}

/// A session whose events are kept as short texts.
final class RecordedSession: Sendable {
  private let texts = Mutex<[String]>([])
  private let opened = Mutex<DatabaseSession?>(nil)

  init(_ fixture: DatabaseFixture, as caller: DatabaseCaller = .admin) {
    let session = fixture.instance.open(as: caller) { [weak self] event in
      self?.texts.withLock { $0.append(Self.text(event)) }
    }
    opened.withLock { $0 = session }
  }

  var session: DatabaseSession {
    guard let session = opened.withLock({ $0 }) else { fatalError("there is no session") }
    return session
  }

  var events: [String] { texts.withLock { $0 } }

  /// Returns the events so far and forgets them, after all that came before this call.
  func take(_ fixture: DatabaseFixture) async throws -> [String] {
    try await fixture.set("barrier", "\(Int.random(in: 0..<1_000_000))")
    return texts.withLock { texts in
      defer { texts = [] }
      return texts
    }
  }

  private static func text(_ event: DatabaseSessionEvent) -> String {
    func tagged(_ text: String, _ tag: Int?) -> String { tag.map { "\(text) #\($0)" } ?? text }
    switch event {
    case .reply(let request, .success(let reply)):
      switch reply {
      case .done: return "\(request) ok"
      case .listening(let index): return "\(request) listening" + (index.map { " \($0)" } ?? "")
      case .node(let node): return "\(request) \(String(decoding: node.json, as: UTF8.self))"
      }
    case .reply(let request, .failure(let error)): return "\(request) \(error.kind)"
    case .value(let path, let node, let tag):
      return tagged("d \(path) \(String(decoding: node.json, as: UTF8.self))", tag)
    case .merge(let path, let members, let tag):
      return tagged("m \(path) \(String(decoding: members.json, as: UTF8.self))", tag)
    case .revoked(let path, _, let tag): return tagged("c \(path)", tag)
    }
  }
}
