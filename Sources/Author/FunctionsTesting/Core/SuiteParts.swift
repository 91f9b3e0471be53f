import AuthAccounts
import DocumentModel
import DocumentStore
import EventLog
import FirestoreClient
import FirestoreEmulator
import Logging
import QueryEngine
import StorageEngine
import TriggerDelivery

/// The database of one suite and its environment, before functions are added.
struct SuiteParts {
  let storage: any OrderedStorage
  let tailer: EventTailer
  let store: DocumentDatabase
  let rules: RulesPolicy
  let accounts: AccountStore
  let auth = AuthTransport()
  let time: VirtualTime
  let environment: TestEnvironment

  init(
    project: String,
    environment: [String: String],
    startTime: Timestamp? = nil,
    storage: any OrderedStorage = MemoryStorage()
  ) async throws {
    let logger = Logger(label: "suite") { _ in SwiftLogNoOpLogHandler() }
    // The clock stands still, because otherwise schedules would run at unpredictable moments.
    let time = VirtualTime(standingAt: startTime ?? VirtualTime.ofMachine)
    let tailer = EventTailer(storage: storage, logger: logger)
    let engine = QueryRunner(logger: logger)
    try await engine.load(from: storage)
    let rules = RulesPolicy(logger: logger)
    let store = DocumentDatabase(
      storage: storage,
      queryRunner: engine,
      tailer: tailer,
      accessPolicy: rules,
      now: { time.now },
      // Locks and transactions expire in real time, because a jump to a retry must not end them.
      clock: ContinuousClock(),
      logger: logger
    )
    let service = FirestoreService(store: store, project: project, rules: rules, logger: logger)
    self.storage = storage
    self.tailer = tailer
    self.store = store
    self.rules = rules
    accounts = AccountStore(
      storage: storage,
      tailer: tailer,
      project: project,
      now: { time.now }
    )
    let http = TestHTTP()
    http.mount(auth, at: "http://\(AuthTransport.host)")
    self.time = time
    self.environment = TestEnvironment(
      firestore: Firestore(project: project, transport: DirectTransport(service: service)),
      http: http,
      variables: environment.merging([
        "GCLOUD_PROJECT": project, "FIREBASE_CONFIG": #"{"projectId":"\#(project)"}"#,
        "FUNCTIONS_EMULATOR": "true", "FIREBASE_AUTH_EMULATOR_HOST": AuthTransport.host,
      ]) { $1 },
      project: project,
      time: time
    )
  }
}
