import DocumentModel
import Identity
import StatusCodes
import Synchronization
import Testing

@testable import DocumentStore
@testable import EventLog

/// A listener whose events a test takes one by one, as short texts.
final class Phone: Sendable {
  let session: ListenSession
  private let queued = Mutex<[ListenEvent]>([])

  init(
    _ fixture: StoreFixture,
    auth: AuthContext = .admin,
    _ configuration: ListenSession.Configuration = .init()
  ) {
    session = fixture.store.openListener(
      database: database,
      auth: auth,
      configuration: configuration
    )
  }

  deinit { session.close() }

  func next() async throws -> ListenEvent {
    while true {
      if let event = queued.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return event }
      let events = try #require(await session.next())
      queued.withLock { $0 += events }
    }
  }

  /// Returns the events up to the next snapshot, excluding it, without times and tokens.
  func toSnapshot() async throws -> [String] {
    var texts: [String] = []
    while true {
      switch try await next() {
      case .snapshot: return texts
      case .added(let id): texts.append("added \(id)")
      case .removed(let id, let cause):
        texts.append("removed \(id)" + (cause.map { " \($0.statusCode.name)" } ?? ""))
      case .reset(let id): texts.append("reset \(id)")
      case .current(let id, _, _): texts.append("current \(id)")
      case .document(let document, let members, let former):
        texts.append(
          "\(document.document.name.path) \(members)" + (former == [] ? "" : " -\(former)")
        )
      case .deleted(let name, let former, _): texts.append("deleted \(name.path) -\(former)")
      case .departed(let name, let former, _): texts.append("departed \(name.path) -\(former)")
      case .filter(let id, let count, _): texts.append("filter \(id) \(count)")
      }
    }
  }

  /// Returns the cause of the next removal of a target.
  func refusal() async throws -> StatusError? {
    while true {
      if case .removed(_, let cause) = try await next() { return cause }
    }
  }
}

/// Runs a test with a store that notifies its listeners.
func withListeners(
  _ fixture: StoreFixture = StoreFixture(),
  _ body: (StoreFixture) async throws -> Void
) async throws {
  let telling = Task {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await fixture.store.tailer.run() }
      group.addTask { try await fixture.store.hub.run(for: fixture.store) }
      try await group.waitForAll()
    }
  }
  try await body(fixture)
  telling.cancel()
  _ = await telling.result
}
