import FunctionsTesting
@testable import PsstFunctions
import PsstBackend
import PsstServices
import Synchronization
import TestSupport

/// Psst's functions on vectors, with a trainer, two clients, and a chat of two of them.
struct ChatFixture: Sendable {
  let suite: FunctionsSuite
  let functions: AppFunctions
  let providers: ProviderStub
  let waits: WaitLog

  var services: BackendServices { functions.services }

  /// Runs a test with its own suite and database.
  static func run(
    _ embedding: EmbeddingSettings = .lexical,
    deliveryFaults: DeliveryFaults? = nil,
    clock: any Clock<Duration> = WakingClock(wakes: 0),
    _ test: (ChatFixture) async throws -> Void
  ) async throws {
    let providers = ProviderStub()
    let waits = WaitLog()
    try await withFunctions(Self.app, deliveryFaults: deliveryFaults) { environment in
      environment.http.mount(providers, at: ProviderStub.host)
      let services = BackendServices(
        firestore: environment.firestore,
        settings: PsstSettings(
          embedding: embedding,
          vectors: VectorSettings(host: ProviderStub.host)
        ),
        http: environment.http,
        retries: ServiceRetries(
          sleep: { waits.add($0) },
          random: { 0 },
          now: { environment.now.date }
        ),
        clock: clock
      )
      return AppFunctions(services: services)
    } test: { suite, functions in
      let fixture = ChatFixture(
        suite: suite,
        functions: functions,
        providers: providers,
        waits: waits
      )
      try await fixture.put("users/tina", ["displayName": "Tina", "role": "trainer"])
      try await fixture.put("users/carl", ["displayName": "Carl", "role": "client"])
      try await fixture.put("users/cora", ["displayName": "Cora", "role": "client"])
      try await fixture.chat("c1", ["tina", "carl"])
      try await test(fixture)
    }
  }

  /// The functions without the preparations of a worker.
  private static func app(_ functions: AppFunctions) -> FunctionsApp {
    FunctionsApp { functions.onVectors }
  }

  /// Events wait for `settle`, and then are delivered once and in order.
  static let inOrder = DeliveryFaults.inOrder

  /// A model that uses OpenAI's protocol.
  static let tinyModel = EmbeddingSettings.openAI(
    baseURL: ProviderStub.host + "/v1",
    key: "key",
    model: EmbeddingModel(
      provider: "openai",
      name: "tiny",
      dimension: 1024,
      relevanceThreshold: 0.1
    )
  )

  // MARK: Writes

  func put(_ path: String, _ fields: [String: FieldValue]) async throws {
    try await suite.firestore.document(path).set(fields)
  }

  func chat(_ id: String, _ members: [String], isGroup: Bool = false) async throws {
    try await put("chats/\(id)", ["members": .value(members), "isGroupChat": .value(isGroup)])
  }

  /// Writes a message without waiting for its functions.
  func write(
    _ id: String,
    _ text: String,
    by sender: String = "carl",
    in chat: String = "c1"
  ) async throws {
    try await put("chats/\(chat)/messages/\(id)", Self.message(text, by: sender))
  }

  /// Writes a message and waits until it is embedded.
  func say(
    _ id: String,
    _ text: String,
    by sender: String = "carl",
    in chat: String = "c1"
  ) async throws {
    try await write(id, text, by: sender, in: chat)
    try await suite.settle()
  }

  /// Deletes a message without waiting for its functions.
  func delete(_ id: String, in chat: String = "c1") async throws {
    try await suite.firestore.document("chats/\(chat)/messages/\(id)").delete()
  }

  static func message(_ text: String, by sender: String = "carl") -> [String: FieldValue] {
    [
      "text": .value(text), "senderID": .value(sender), "readBy": [],
      "timestamp": .value(Timestamp(microseconds: 1_714_557_600_123_456)),
    ]
  }

  // MARK: Queries

  /// Searches as a client does.
  func search(
    _ query: String,
    as uid: String = "carl",
    limit: Int? = nil,
    chatId: String? = nil,
    minScore: Double? = nil
  ) async throws -> SemanticSearchReply {
    try await suite.call(
      functions.semanticSearch,
      SemanticSearchQuery(query: query, limit: limit, chatId: chatId, minScore: minScore),
      as: .user(uid)
    )
  }

  /// Returns the metadata of the last log line with this message.
  func logged(_ message: String) -> [String: String]? {
    suite.logs.last { $0.message == message }?.metadata
  }
}

/// A clock whose first sleepers wake at once, and all others only on cancellation.
struct WakingClock: Clock {
  /// The number of sleepers that wake at once.
  let wakes: Int
  private let sleepers = Counter()
  private let clock = ContinuousClock()

  init(wakes: Int) {
    self.wakes = wakes
  }

  var now: ContinuousClock.Instant { clock.now }
  var minimumResolution: Duration { clock.minimumResolution }

  func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
    if sleepers.next() >= wakes { try await clock.sleep(for: .seconds(3600)) }
  }

  private final class Counter: Sendable {
    private let count = Mutex(0)
    func next() -> Int {
      count.withLock { count in
        defer { count += 1 }
        return count
      }
    }
  }
}
