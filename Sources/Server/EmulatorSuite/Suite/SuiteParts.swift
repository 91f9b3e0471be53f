import AuthAccounts
import AuthEmulator
import DataExport
import DatabaseModel
import DatabaseTree
import Deployment
import DocumentModel
import DocumentStore
import EventLog
import Events
import FirestoreEmulator
import Foundation
import Logging
import QueryEngine
import SQLiteStorage
import TriggerDelivery
import VectorEmulator
import VectorIndex
import WorkerPool

/// The components of a suite behind its ports, which store data and run functions.
struct SuiteParts {
  let time = VirtualTime()
  let tailer: EventTailer
  let retention: EventRetention
  let queries: QueryRunner
  let rules: RulesPolicy
  let rulesFiles: [RulesFile]
  let documents: DocumentDatabase
  let database: RealtimeDatabase
  let accounts: AccountStore
  let auth: AuthService
  let vectors: VectorCatalog
  let transfer: DataTransfer
  let logs: FunctionLogStore
  let fleet: WorkerFleet
  let deliveries: DeliveryService
  let starts: StartWatch

  /// Creates the components and loads indexes, rules and vectors; starts no service yet.
  init(
    configuration: SuiteConfiguration,
    folder: DataFolder,
    storage: SQLiteStore,
    log report: @escaping @Sendable (SuiteReport) -> Void,
    logger: (String) -> Logger
  ) async throws {
    let now: @Sendable () -> Timestamp = { [time] in time.now }
    tailer = EventTailer(storage: storage, logger: logger("events"))
    let longReads = LongReads()
    let retention = EventRetention(
      storage: storage,
      tailer: tailer,
      clock: ContinuousClock(),
      now: now,
      holders: configuration.firstFunctions == nil ? [] : [DeliveryService.cursorName],
      needed: { longReads.neededSequence },
      logger: logger("events"),
      willTrim: { records, snapshot, batch in
        for record in records { PastVersions.forget(record, in: &batch) }
        try DeliveryService.keepNeeded(records, in: snapshot, to: &batch)
      }
    )
    self.retention = retention
    let queries = QueryRunner(
      configuration: .init(
        declaredIndexes: try configuration.indexesFile.map(IndexesFile.read)
      ),
      logger: logger("firestore")
    )
    self.queries = queries
    try await queries.load(from: storage)
    let rules = RulesPolicy(logger: logger("rules"))
    self.rules = rules
    let fullLogAdvice = FullLogAdvice()
    let documents = DocumentDatabase(
      storage: storage,
      queryRunner: queries,
      tailer: tailer,
      accessPolicy: rules,
      now: now,
      clock: ContinuousClock(),
      longReads: longReads,
      exceededCursor: { retention.exceeded },
      exceededAdvice: { fullLogAdvice.text },
      logger: logger("firestore")
    )
    self.documents = documents
    logs = FunctionLogStore(folder: folder.path + "/logs", now: { Date() }) { report(.log($0)) }
    fleet = WorkerFleet(
      configuration: .init(
        environment: configuration.environment,
        clockLead: { [time] in time.offset }
      ),
      log: logs,
      journal: InvocationJournal(log: logs) { [time] in
        time.offset == .zero ? nil : time.now.description
      },
      logger: logger("workers")
    )
    fleet.unserved = Deployer.unserved(
      in: folder.deployments,
      deploysFirst: configuration.firstFunctions != nil
    )
    let deliveries = DeliveryService(
      storage: storage,
      tailer: tailer,
      invoker: fleet,
      configuration: .init(project: configuration.project, isOrdered: configuration.isOrdered),
      now: now,
      logger: logger("triggers")
    )
    self.deliveries = deliveries
    let database = RealtimeDatabase(
      storage: storage,
      tailer: tailer,
      project: configuration.project,
      now: now,
      captureDepth: { [deliveries] instance, path in
        // Before the first deployment, any function may be going to watch the node.
        guard let patterns = deliveries.databasePatterns else { return path.count }
        return patterns.captureDepth(of: path.keys, instance: instance)
      },
      logger: logger("database")
    )
    self.database = database
    let rulesLogger = logger("rules")
    let firestoreRules = configuration.rulesFile.map { path in
      let target = FirestoreRulesTarget(
        project: configuration.project,
        policy: rules,
        store: documents,
        logger: rulesLogger
      )
      return RulesFile(path: path, target: target, logger: rulesLogger)
    }
    let instances = Dictionary(grouping: configuration.databaseRules, by: \.value)
    let databaseRules = try instances.sorted { $0.key < $1.key }.map { path, names in
      let target = try DatabaseRulesTarget(names.map(\.key).sorted(), of: database)
      return RulesFile(path: path, target: target, logger: rulesLogger)
    }
    rulesFiles = [firestoreRules].compactMap(\.self) + databaseRules
    for file in rulesFiles { try await file.load() }
    accounts = AccountStore(
      storage: storage,
      tailer: tailer,
      project: configuration.project,
      now: now
    )
    vectors = VectorCatalog(storage: storage)
    try await vectors.loadIndexes()
    // An import writes vector records, so the stored ones must be loaded first. A start without
    // import does not need them yet.
    if configuration.importFolder != nil {
      try await VectorLoader(catalog: vectors, logger: logger("vectors")).load()
    }
    transfer = DataTransfer(
      project: configuration.project,
      exporter: DataExporter(
        store: documents,
        accounts: accounts,
        database: database,
        vectors: vectors,
        version: configuration.version
      ),
      importer: DataImporter(
        store: documents,
        accounts: accounts,
        database: database,
        vectors: vectors,
        storage: storage,
        project: configuration.project,
        now: now
      ),
      logger: logger("hub")
    )
    auth = AuthService(
      store: accounts,
      blockingFunctions: DeployedBlockingFunctions(invoker: fleet) { [fleet] in
        try fleet.knownEndpoints
      },
      logger: logger("auth")
    )
    fullLogAdvice.follow(deliveries)
    starts = StartWatch(folder: folder.deployments, logger: logger("deployment"))
  }
}
