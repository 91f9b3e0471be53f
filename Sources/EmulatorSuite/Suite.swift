import DataExport
import Deployment
import DocumentModel
import DocumentStore
import EventLog
import FirestoreEmulator
import Foundation
import FunctionsGateway
import GRPCServer
import HTTPSupport
import HummingbirdCore
import Invocation
package import Logging
import QueryEngine
import RuntimeSupport
import SQLiteStorage
import ServiceLifecycle
import StorageEngine
import Synchronization
import TaskQueues
import TriggerDelivery
import VectorEmulator
import VectorIndex
import WorkerPool

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The whole suite in one process: storage, the emulators, the workers and the control API.
///
/// `run()` returns after a graceful shutdown: running functions get 1.5 seconds, then they are
/// cancelled and what they had in hand stays pending; then the storage is closed.
package final class Suite: Service {
  let configuration: SuiteConfiguration
  let report: @Sendable (SuiteReport) -> Void
  private let logger: Logger
  private let folder: DataFolder
  private let storage: SQLiteStore
  private let addresses = Mutex<[SuiteService: ServiceAddress]>([:])
  private let listening: AsyncStream<Void>
  private let listener: AsyncStream<Void>.Continuation

  /// Opens the data folder.
  ///
  /// Throws a `StatusConvertible` when the folder is unwritable, in use by another suite, corrupt
  /// or of a newer version; it is left untouched then. `report` is called on any thread.
  package init(
    configuration: SuiteConfiguration,
    logger: Logger,
    report: @escaping @Sendable (SuiteReport) -> Void
  ) throws {
    self.configuration = configuration
    self.logger = logger
    self.report = report
    folder = try DataFolder(configuration: configuration)
    storage = try SQLiteStore(
      folder: folder.path,
      configuration: .init(isDurable: !configuration.isEphemeral),
      logger: logger
    ) { failure in
      logger.critical("\(failure.message)")
    }
    (listening, listener) = AsyncStream.makeStream()
  }

  package func run() async throws {
    do {
      try await serve()
    } catch let error as CorruptDataError {
      try await close()
      throw StatusError(
        .dataLoss,
        "the data folder \(folder.path) is damaged (\(error)); restore a copy of it, or move it "
          + "away to start anew"
      )
    } catch {
      try await close()
      throw error
    }
    try await close()
  }

  private func close() async throws {
    ServerFile.remove(description, folder: folder.path)
    try await storage.close()
    try folder.removeIfEphemeral()
  }

  /// Runs the services in an order in which each finds what it needs, and stops them in reverse:
  /// the workers go first, while the data that their functions use is still served.
  private func serve() async throws {
    let time = VirtualTime()
    let now: @Sendable () -> Timestamp = { time.now }
    let tailer = EventTailer(storage: storage, logger: logger(for: "events"))
    let retention = EventRetention(
      storage: storage,
      tailer: tailer,
      clock: ContinuousClock(),
      now: now,
      holders: firstFunctions == nil ? [] : [DeliveryService.cursorName],
      logger: logger(for: "events"),
      willTrim: PastVersions.forget
    )
    let store = try await documentStore(tailer: tailer, retention: retention, now: now)
    let catalogue = VectorCatalogue(storage: storage)
    try await catalogue.loadIndexes()

    let transfer = DataTransfer(
      project: configuration.project,
      exporter: DataExporter(store: store, vectors: catalogue, version: configuration.version),
      importer: DataImporter(
        store: store,
        vectors: catalogue,
        storage: storage,
        project: configuration.project,
        now: now
      ),
      logger: logger(for: "hub")
    )
    // An import writes records, so it waits for those that are there; a usual start does not.
    if configuration.importFolder != nil { try await catalogue.loadRecords() }
    try await importAtStart(transfer.importer, from: storage)

    let report = self.report
    let logs = FunctionLogStore(folder: folder.path + "/logs", now: { Date() }) { entry in
      report(.log(entry))
    }
    let fleet = WorkerFleet(
      configuration: .init(environment: configuration.environment),
      log: logs,
      logger: logger(for: "workers")
    )
    let deliveries = DeliveryService(
      storage: storage,
      tailer: tailer,
      invoker: fleet,
      configuration: .init(
        project: configuration.project,
        isOrdered: configuration.isOrdered
      ),
      now: now,
      logger: logger(for: "triggers")
    )
    let deployment = FirstDeployment { [self] in
      for await _ in listening.prefix(SuiteService.allCases.count) {}
      // The wait also ends when a service could not listen.
      guard !Task.isCancelled else { return }
      try await deployFirst(fleet, deliveries, logs, transfer, time)
    }

    let firestore = FirestoreService(
      store: store,
      project: configuration.project,
      exporter: { [folder] request in
        let base = request.directory.hasPrefix("/") ? "" : folder.path + "/exports/"
        let path = "\(base)\(request.directory)/\(request.name)"
        return try await transfer.exporter.export(request.database, to: path).path
      },
      originGuard: originGuard,
      logger: logger(for: "firestore")
    )
    let vectors = VectorDoor(catalogue: catalogue, logger: logger(for: "vectors"))
    let gateway = InvocationGateway(
      project: configuration.project,
      functions: { fleet.endpoints },
      invoker: fleet,
      logger: logger(for: "functions")
    )
    let functions = FunctionsDoor(
      project: configuration.project,
      gateway: gateway,
      functions: { fleet.endpoints },
      invoker: fleet,
      folder: configuration.functions?.source.folder,
      originGuard: originGuard,
      isEnabled: { [triggers] in triggers.isEnabled },
      publish: { try await deliveries.publish([$0]) }
    )
    let tasks = TaskQueueDoor(
      project: configuration.project,
      backend: deliveries,
      functionURL: { [self] location, queue in
        let functions = addresses.withLock { $0[.functions] }
        return "http://\(functions?.host ?? ""):\(functions?.port ?? 0)/"
          + "\(configuration.project)/\(location)/\(queue)"
      },
      now: now,
      logger: logger(for: "tasks")
    )
    let group = ServiceGroup(
      configuration: .init(
        services: [
          essential(tailer),
          essential(retention),
          essential(store),
          essential(
            firestore.httpService(
              address: address(.firestore),
              onListening: { [self] in noteListening(.firestore, $0) },
              screen: screen(wrongDoor(of: .firestore))
            ),
            .firestore
          ),
          essential(VectorLoader(catalogue: catalogue)),
          essential(
            http(.vectors) { request, _ in await vectors.respond(to: request) },
            .vectors
          ),
          essential(deliveries),
          essential(
            http(.functions, short: gateway) { await functions.respond(to: $0, $1) },
            .functions
          ),
          essential(
            http(.tasks) { request, _ in await tasks.respond(to: request) },
            .tasks
          ),
          essential(
            http(.hub) { [self] request, context in
              guard let api = control.withLock({ $0 }) else {
                return .error(.unavailable, "The suite is starting; try again in a moment.")
              }
              return await api.respond(to: request, context)
            },
            .hub
          ),
          essential(deployment),
          essential(fleet),
        ],
        logger: Logger(label: "lifecycle") { _ in SwiftLogNoOpLogHandler() }
      )
    )
    try await group.run()
    try await exportAtEnd(transfer.exporter)
  }

  /// A service whose failure ends the others as a stop does: in order, and without noise.
  private func essential(
    _ service: any Service
  ) -> ServiceGroupConfiguration.ServiceConfiguration {
    .init(service: service, failureTerminationBehavior: .gracefullyShutdownGroup)
  }

  private func essential(
    _ service: HTTPService,
    _ name: SuiteService
  ) -> ServiceGroupConfiguration.ServiceConfiguration {
    essential(
      ListeningService(
        name: name,
        body: service,
        elsewhere: configuration.movable.contains(name)
          ? service.listening(at: .tcp(host: configuration.host, port: 0)) : nil,
        logger: logger(for: name.rawValue)
      )
    )
  }

  private let control = Mutex<ControlAPI?>(nil)
  private let triggers = TriggerSwitch()

  private func documentStore(
    tailer: EventTailer,
    retention: EventRetention,
    now: @escaping @Sendable () -> Timestamp
  ) async throws -> DocumentStore {
    let engine = QueryEngine(logger: logger(for: "firestore"))
    try await engine.load(from: storage)
    return DocumentStore(
      storage: storage,
      queryEngine: engine,
      tailer: tailer,
      now: now,
      clock: ContinuousClock(),
      exceededCursor: { retention.exceeded },
      logger: logger(for: "firestore")
    )
  }

  /// Once every service listens: opens the control API, serves the last deployment, makes a new one.
  private func deployFirst(
    _ fleet: WorkerFleet,
    _ deliveries: DeliveryService,
    _ logs: FunctionLogStore,
    _ transfer: DataTransfer,
    _ time: VirtualTime
  ) async throws {
    let suite = description
    let deployer = Deployer(
      controller: DeploymentController(
        configuration: .init(
          project: suite.project,
          folder: folder.path + "/deployments",
          environment: workerEnvironment(suite)
        ),
        now: { Date() },
        logger: logger(for: "deployment")
      ) { try await fleet.replaceFunctions($0) },
      deliveries: deliveries,
      fleet: fleet,
      source: configuration.functions?.source,
      logger: logger(for: "deployment")
    )
    let api = ControlAPI(
      project: suite.project,
      version: configuration.version,
      originGuard: originGuard,
      description: { [storage] in
        var current = suite
        current.problem = storage.failure?.message
        return current
      },
      fleet: fleet,
      logs: logs,
      deliveries: deliveries,
      deployer: deployer,
      transfer: transfer,
      deliveryRequest: DeliveryRequest(
        project: suite.project,
        location: FunctionEndpoint.defaultRegion
      ),
      time: time,
      triggers: triggers,
      logger: logger(for: "hub")
    )
    let isRestored = await deployer.restore()
    guard !Task.isCancelled else { return }
    control.withLock { $0 = api }
    try ServerFile.write(suite, folder: folder.path, version: configuration.version)
    report(.listening(suite))
    // What changes while the first build runs counts.
    let watch = await sourceWatch(project: suite.project)
    var problem: String?
    if let functions = firstFunctions {
      let report = self.report
      problem = await deployer.deploy(builds: functions.builds) { line in
        if line.kind == .progress { report(.deployProgress(line.text)) }
      }
      // A build that Ctrl-C cut short has not failed.
      guard !Task.isCancelled else { return }
      if problem != nil, isRestored { problem?.append("\nThe last deployment keeps serving.") }
    }
    report(.ready(suite, functions: api.functions(), problem: problem))
    guard let watch else { return }
    do {
      try await deployer.follow(watch, report: report)
    } catch is CancellationError {
      // The suite stops.
    }
  }

  /// A watch of the functions' sources as they are now, where one is asked for.
  private func sourceWatch(project: String) async -> SourceWatch? {
    guard let functions = configuration.functions, functions.isWatched else { return nil }
    let watch = SourceWatch(functions.source, project: project, excluding: [folder.path])
    await watch.begin()
    return watch
  }

  /// The functions to deploy once the services listen.
  private var firstFunctions: SuiteConfiguration.Functions? {
    configuration.functions.flatMap { $0.deploysAtStart ? $0 : nil }
  }

  /// Who may reach what can do harm.
  private var originGuard: LoopbackGuard {
    LoopbackGuard(allowing: configuration.host == "127.0.0.1" ? [] : [configuration.host])
  }

  /// What every worker learns of the suite.
  private func workerEnvironment(_ suite: SuiteDescription) -> [String: String] {
    func address(_ service: SuiteService) -> String {
      suite.services[service.rawValue].map { "\($0.host):\($0.port)" } ?? ""
    }
    return [
      "GCLOUD_PROJECT": suite.project,
      "FIREBASE_CONFIG": #"{"projectId":\#(jsonQuoted(suite.project))}"#,
      "FUNCTIONS_EMULATOR": "true",
      "FIRESTORE_EMULATOR_HOST": address(.firestore),
      "CLOUD_TASKS_EMULATOR_HOST": address(.tasks),
      "FIREBASE_EMULATOR_HUB": address(.hub),
      "HEARTH_VECTORS_HOST": "http://\(address(.vectors))",
    ]
  }

  private func http(
    _ service: SuiteService,
    short: (any ShortResponder)? = nil,
    responder: @escaping HTTPService.Responder
  ) -> HTTPService {
    let wrongDoor = wrongDoor(of: service)
    return HTTPService(
      address: address(service),
      http2: wrongDoor.grpcServer().configure,
      logger: logger(for: service.rawValue),
      onListening: { [self] in noteListening(service, $0) },
      screen: screen(wrongDoor),
      short: short,
      responder: responder
    )
  }

  private func wrongDoor(of service: SuiteService) -> WrongDoor {
    WrongDoor(
      of: service,
      project: configuration.project,
      addresses: { [self] in addresses.withLock { $0 } },
      logger: logger(for: service.rawValue)
    )
  }

  /// Refuses names that a foreign page may own, while only this machine is listened to.
  private func screen(_ wrongDoor: WrongDoor) -> HTTPService.Screen {
    let isLoopback = configuration.host.hasPrefix("127.") || configuration.host == "localhost"
    let nameGuard = LoopbackGuard()
    return { request in
      (isLoopback ? nameGuard.refusal(ofNameIn: request) : nil) ?? wrongDoor.refusal(of: request)
    }
  }

  private func address(_ service: SuiteService) -> ServerAddress {
    .tcp(host: configuration.host, port: configuration.ports[service] ?? 0)
  }

  private func noteListening(_ service: SuiteService, _ address: ServerAddress) {
    addresses.withLock {
      $0[service] = ServiceAddress(host: configuration.host, port: address.port ?? 0)
    }
    listener.yield()
  }

  private func logger(for label: String) -> Logger {
    var logger = Logger(label: label)
    logger.logLevel = self.logger.logLevel
    return logger
  }

  private var description: SuiteDescription {
    SuiteDescription(
      project: configuration.project,
      pid: getpid(),
      services: Dictionary(
        uniqueKeysWithValues: addresses.withLock { $0 }.map { ($0.key.rawValue, $0.value) }
      )
    )
  }
}

/// A service with a port, whose failure to get it names the flag that helps.
private struct ListeningService: Service {
  let name: SuiteService
  let body: HTTPService
  /// What runs when the port is taken, if another does as well.
  let elsewhere: HTTPService?
  let logger: Logger

  func run() async throws {
    do {
      try await body.run()
    } catch let error as ListenError where error.reason == .inUse {
      if let elsewhere {
        logger.notice("\(error.address) is in use, so \(name.title) takes a free port")
        return try await elsewhere.run()
      }
      throw StatusError(
        error.statusCode,
        "\(error.address) is in use by another program, so \(name.title) cannot listen there; "
          + "stop that program, or choose another port with --\(name.rawValue)-port (0 takes a "
          + "free one)."
      )
    }
  }
}

/// What happens once after the services are up; it may be cut short by shutdown.
///
/// Stays until then, for a service that ends while others are being shut down ends the group.
private struct FirstDeployment: Service {
  let body: @Sendable () async throws -> Void

  func run() async throws {
    try await cancelWhenGracefulShutdown { try await body() }
    // Cancelled when another service has failed: that one is told.
    try? await gracefulShutdown()
  }
}
