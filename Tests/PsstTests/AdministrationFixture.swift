import FirestoreClient
import FunctionsRuntime
import FunctionsTesting
@testable import PsstFunctions
import PsstModels
import PsstBackend
import TestSupport

/// Psst's administrator functions over a database that can fail, without triggers.
struct AdministrationFixture: Sendable {
  let suite: FunctionsSuite
  let functions: AppFunctions
  let faults: FaultyFirestore
  let providers: ProviderStub
  /// The lease's clock, which a test advances.
  let clock: ManualClock

  var services: BackendServices { functions.services }

  /// The URL to which backups are requested.
  static let export = "http://firestore.test/emulator/v1/projects/demo-test:export"

  var db: Firestore { suite.firestore }

  // MARK: Documents

  func user(_ uid: String, _ role: String?, name: String? = nil, email: String? = nil) async throws
  {
    var fields: [String: FieldValue] = ["id": .value(uid)]
    fields["role"] = role.map { .value($0) }
    fields["displayName"] = .value(name ?? uid.capitalizedFirst)
    fields["email"] = .value(email ?? "\(uid)@psst.app")
    try await db.document("users/\(uid)").set(fields)
  }

  func chat(
    _ id: String,
    _ members: [String],
    isGroup: Bool = false,
    createdAt: Int64 = 1_700_000_000
  ) async throws {
    try await db.document("chats/\(id)").set([
      "members": .value(members), "isGroupChat": .value(isGroup),
      "createdAt": .value(Timestamp(microseconds: createdAt * 1_000_000)),
    ])
  }

  func message(_ id: String, _ text: String?, in chat: String = "c1") async throws {
    var fields: [String: FieldValue] = [
      "senderID": "carl", "timestamp": .value(Timestamp(microseconds: 1_714_557_600_123_456)),
    ]
    if let text { fields["text"] = .value(text) } else { fields["mediaType"] = "image" }
    try await db.document("chats/\(chat)/messages/\(id)").set(fields)
  }

  /// Creates two trainers, two clients, a user without a role, and chats of most kinds.
  func people() async throws {
    try await user("tina", "trainer")
    try await user("theo", "trainer")
    try await user("carl", "client")
    try await user("cora", "client")
    try await user("olga", nil)
    try await chat("c1", ["tina", "carl"], createdAt: 2000)
    try await chat("c2", ["tina", "theo"])
    try await chat("c3", ["carl", "cora"])
    try await chat("c4", ["olga", "cora"], createdAt: 3000)
    try await chat("g1", ["tina", "theo", "carl", "cora", "ghost"], isGroup: true, createdAt: 1000)
  }

  /// Returns all contacts by path.
  func contacts() async throws -> [String: Client] {
    let found = try await db.collectionGroup("clients").get()
    return try found.reduce(into: [:]) { $0[$1.reference.path] = try $1.data(as: Client.self) }
  }

  /// Writes the lease of another run.
  func lease(_ name: String, of run: FieldValue = "other") async throws {
    try await db.document("leases/\(name)").set(["run": run, "renewedAt": .serverTimestamp])
  }

  /// Returns the error of work that waits for a lease without success; nil if the work proceeds.
  func refusal<Output: Sendable>(
    _ work: @escaping @Sendable () async throws -> Output
  ) async -> (any Error)? {
    let task = Task { try await work() }
    await clock.waitForSleepers()
    clock.advance(by: .seconds(31))
    if case .failure(let error) = await task.result { return error }
    return nil
  }

  /// Advances the clock until leases that are not renewed expire.
  func outliveLeases() async throws { try await suite.clock.advance(by: .seconds(31)) }

  // MARK: Calls

  func migrate(
    _ trainerIds: [String]? = nil,
    dryRun: Bool? = nil,
    confirm: String? = nil,
    as token: TestToken = .admin
  ) async throws -> MigrationReport {
    try await suite.call(
      functions.migrateExistingChats,
      MigrateExistingChatsOrder(trainerIds: trainerIds, dryRun: dryRun, confirm: confirm),
      as: token
    )
  }

  func migrateReally(_ trainerIds: [String]? = nil) async throws -> MigrationReport {
    try await migrate(trainerIds, dryRun: false, confirm: "migrate")
  }

  func rollBack(
    _ run: String,
    dryRun: Bool? = false,
    confirm: String? = "rollback",
    as token: TestToken = .admin
  ) async throws -> RollbackReport {
    try await suite.call(
      functions.rollbackMigration,
      RollbackMigrationOrder(run: run, dryRun: dryRun, confirm: confirm),
      as: token
    )
  }

  func backfill(
    chatId: String? = nil,
    limit: Int? = nil,
    dryRun: Bool? = false,
    confirm: String? = "backfill",
    maxCostUSD: Double? = nil,
    as token: TestToken = .admin
  ) async throws -> BackfillReport {
    try await suite.call(
      functions.backfillEmbeddings,
      BackfillOrder(
        chatId: chatId,
        limit: limit,
        dryRun: dryRun,
        confirm: confirm,
        maxCostUSD: maxCostUSD
      ),
      as: token
    )
  }
}

extension String {
  fileprivate var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}

/// Runs a test with its own suite and database.
func withAdministration(
  _ embedding: EmbeddingSettings = .lexical,
  backup: BackupSettings = .emulator(
    endpoint: "http://firestore.test",
    project: "demo-test",
    directory: "backups"
  ),
  exportStatus: Int = 200,
  limits: UsageLimits = UsageLimits(),
  test: (AdministrationFixture) async throws -> Void
) async throws {
  let providers = ProviderStub()
  let clock = ManualClock()
  try await withFunctions(\.app) { environment in
    environment.http.mount(providers, at: ProviderStub.host)
    environment.http.on("POST", AdministrationFixture.export)
      .respond(status: exportStatus, json: ["exportPath": "/backup"])
    let faults = FaultyFirestore(environment.firestore)
    let services = BackendServices(
      firestore: faults.firestore,
      settings: PsstSettings(
        embedding: embedding,
        vectors: VectorSettings(host: ProviderStub.host),
        backup: backup,
        limits: limits
      ),
      http: environment.http,
      retries: ServiceRetries(sleep: { _ in }, random: { 0 }, now: { environment.now.date }),
      clock: clock
    )
    return Administration(functions: AppFunctions(services: services), faults: faults)
  } test: { suite, administration in
    try await test(
      AdministrationFixture(
        suite: suite,
        functions: administration.functions,
        faults: administration.faults,
        providers: providers,
        clock: clock
      )
    )
  }
}

/// The deployed functions and the faults of their database.
private struct Administration {
  let functions: AppFunctions
  let faults: FaultyFirestore

  var app: FunctionsApp {
    FunctionsApp {
      functions.migrateExistingChats
      functions.rollbackMigration
      functions.backfillEmbeddings
    }
  }
}
