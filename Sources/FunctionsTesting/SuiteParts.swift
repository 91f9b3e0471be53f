import DocumentModel
import DocumentStore
import EventLog
import FirestoreClient
import FirestoreEmulator
import Logging
import QueryEngine
import StorageEngine
import TriggerDelivery

/// The database of one suite and all that stands around it, before there are functions.
struct SuiteParts {
  let storage: any StorageEngine
  let tailer: EventTailer
  let store: DocumentStore
  let time: VirtualTime
  let world: FunctionsWorld

  init(
    project: String,
    environment: [String: String],
    startTime: Timestamp? = nil,
    storage: any StorageEngine = MemoryStorage()
  ) async throws {
    let logger = Logger(label: "suite") { _ in SwiftLogNoOpLogHandler() }
    // A time that passed by itself would let schedules run when they like.
    let time = VirtualTime(standingAt: startTime ?? VirtualTime.ofMachine)
    let tailer = EventTailer(storage: storage, logger: logger)
    let engine = QueryEngine(logger: logger)
    try await engine.load(from: storage)
    let store = DocumentStore(
      storage: storage,
      queryEngine: engine,
      tailer: tailer,
      now: { time.now },
      // Locks and transactions end after real time: a jump to a retry must not end them.
      clock: ContinuousClock(),
      logger: logger
    )
    let service = FirestoreService(store: store, project: project, logger: logger)
    self.storage = storage
    self.tailer = tailer
    self.store = store
    self.time = time
    world = FunctionsWorld(
      firestore: Firestore(project: project, transport: DirectTransport(service: service)),
      http: TestHTTP(),
      environment: environment.merging([
        "GCLOUD_PROJECT": project, "FIREBASE_CONFIG": #"{"projectId":"\#(project)"}"#,
        "FUNCTIONS_EMULATOR": "true",
      ]) { $1 },
      project: project,
      time: time
    )
  }
}
