import DataExport
import Deployment
import DocumentModel
import DocumentStore
import EventLog
import FirestoreEmulator
import Foundation
import FunctionsGateway
import HTTP2Server
import HTTPSupport
import Identifiers
import LibC
package import Logging
import QueryEngine
import RealtimeDatabaseEmulator
import ServiceLifecycle
import SQLiteStorage
import StatusCodes
import StorageEngine
import Synchronization
import TaskQueues
import TriggerDelivery
import VectorEmulator
import VectorIndex
import WorkerPool

/// The whole suite in one process: storage, emulators, workers and control API.
///
/// `run()` returns after a graceful shutdown. Running functions get 1.5 seconds and are then
/// cancelled; their events stay pending. Any service that still runs after `stopTimeMax` is
/// cancelled. The storage is closed last.
package final class Suite: Service {
  let configuration: SuiteConfiguration
  let report: @Sendable (SuiteReport) -> Void
  private let logger: Logger
  let folder: DataFolder
  let storage: SQLiteStore
  let addresses = Mutex<[SuiteService: ServiceAddress]>([:])
  private let listening: AsyncStream<Void>
  private let listener: AsyncStream<Void>.Continuation
  /// The control API; nil until the last deployment is served.
  let control = Mutex<ControlAPI?>(nil)
  let triggers: TriggerSwitch
  let stopNotice = StopNotice()
  /// The connections of all ports.
  let roster: ConnectionRoster
  /// The memory budget for request and response bodies of all connections.
  let budget: TransferBudget
  /// The token that the control API requires; new at each start.
  package let token = RandomID.make(length: 40)

  /// Opens the data folder.
  ///
  /// Throws a `StatusConvertible` if the folder is not writable, in use by another suite, corrupt
  /// or of a newer version, and then leaves it unchanged. `report` is called on any thread.
  package init(
    configuration: SuiteConfiguration,
    logger: Logger,
    report: @escaping @Sendable (SuiteReport) -> Void
  ) throws {
    self.configuration = configuration.yieldingPorts()
    self.logger = logger
    self.report = report
    var triggersLogger = Logger(label: "triggers")
    triggersLogger.logLevel = logger.logLevel
    triggers = TriggerSwitch(logger: triggersLogger)
    roster = ConnectionRoster(logger: logger)
    budget = TransferBudget(logger: logger)
    folder = try DataFolder(configuration: configuration)
    storage = try SQLiteStore(
      folder: folder.path,
      configuration: .init(isDurable: !configuration.isEphemeral),
      logger: logger
    ) { failure in
      logger.critical("The storage has failed", metadata: ["error": "\(failure.message)"])
    }
    // One element for each service.
    (listening, listener) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
  }

  package func run() async throws {
    do {
      try await serve()
    } catch let error as CorruptDataError {
      try await close()
      throw StatusError(
        .dataLoss,
        "the data folder \(folder.path) is damaged (\(error)); restore a copy of it, or move it "
          + "away to start over"
      )
    } catch let error as ExportOnExitError where configuration.isEphemeral {
      try await close(keepsData: true)
      throw error.keeping(try folder.keep(), of: configuration.project)
    } catch {
      let isExportDue = folder.isExportDue
      try await close(keepsData: isExportDue)
      // A folder that cannot be moved is kept by the next start; the error is the one to throw.
      if isExportDue, let data = try? folder.keep() {
        report(.exportMissed(data: data, project: configuration.project))
      }
      throw error
    }
    try await close()
  }

  /// Ends all requests by closing their connections.
  ///
  /// For a stop in which the services get no thread, because tasks occupy all of them. May be
  /// called on any thread.
  package func endRequests() { roster.closeAll() }

  private func close(keepsData: Bool = false) async throws {
    ServerFile.remove(description, folder: folder.path)
    try await storage.close()
    if !keepsData { try folder.removeIfEphemeral() }
  }

  /// Serves until the suite is asked to stop: storage first, then the ports, then the functions.
  private func serve() async throws {
    let parts = try await SuiteParts(
      configuration: configuration,
      folder: folder,
      storage: storage,
      log: report,
      logger: logger(for:)
    )
    do {
      try await serve(parts)
    } catch {
      await parts.logs.close()
      throw error
    }
    // A temporary folder is removed next; after that, nothing may be written to it.
    await parts.logs.close()
  }

  private func serve(_ parts: SuiteParts) async throws {
    for kept in folder.unexported {
      report(.exportMissed(data: kept.path, project: kept.project))
    }
    // Before the import, which may take minutes.
    try await configuration.checkPorts()
    try checkExportAtEnd()
    do {
      try await cancelWhenGracefulShutdown { [self] in
        try await importAtStart(parts.transfer.importer, from: storage)
      }
    } catch is CancellationError where Task.isShuttingDownGracefully {
      // The next start reports the unfinished import. An export now would replace a complete export
      // with a partial one.
      return
    }
    if configuration.exportFolder != nil { try folder.setExportDue(of: configuration.project) }
    try await group(parts).run()
    await parts.starts.stop()
    try await exportAtEnd(parts.transfer.exporter)
    if configuration.exportFolder != nil { try folder.clearExportDue() }
  }

  /// Creates the service group, with each service after the services that it needs.
  ///
  /// They stop in reverse order: the workers stop first, while the data for their functions is
  /// still served.
  private func group(_ parts: SuiteParts) -> ServiceGroup {
    let database = database(parts)
    let deployment = FirstDeployment { [self] in
      for await _ in listening.prefix(configuration.services.count) {}
      // The wait also ends if a service could not listen.
      guard !Task.isCancelled else { return }
      try await deployFirst(parts, database)
    }
    let firestore = firestore(parts)
    let vectors = VectorService(catalog: parts.vectors, logger: logger(for: "vectors"))
    let functions = functions(parts)
    let tasks = taskQueues(parts)
    let console =
      configuration.hasConsole
      ? [
        essential(consoleService(parts, firestore, database, functions, tasks, vectors), .ui)
      ] : []
    var group = ServiceGroupConfiguration(
      services: [
        essential(parts.tailer),
        essential(parts.retention),
        essential(parts.documents),
        essential(firestoreService(firestore), .firestore),
        essential(parts.database),
        essential(database),
        essential(databaseService(database), .database),
        essential(authService(parts), .auth),
        essential(VectorLoader(catalog: parts.vectors, logger: logger(for: "vectors"))),
        essential(vectorService(vectors), .vectors),
        essential(parts.deliveries),
        essential(TriggerLeaseService(triggers: triggers, deliveries: parts.deliveries)),
        essential(functionsService(functions), .functions),
        essential(taskQueueService(tasks), .tasks),
        essential(hubService(), .hub),
      ] + console + [
        essential(StartSurvival(starts: parts.starts)),
        essential(deployment),
        essential(parts.fleet),
        // The last service of the list stops first.
        essential(stopNotice),
      ] + followedFiles(parts),
      logger: Logger(label: "lifecycle") { _ in SwiftLogNoOpLogHandler() }
    )
    group.maximumGracefulShutdownDuration = Self.stopTimeMax
    return ServiceGroup(configuration: group)
  }

  /// The time that all services together have for their graceful shutdown.
  ///
  /// It is a little longer than the time for running functions, so that their last responses are
  /// sent. It is shorter than the two seconds within which a stop ends.
  private static let stopTimeMax = Duration.milliseconds(1700)

  /// Returns services for the project's files that may change while the suite runs.
  private func followedFiles(
    _ parts: SuiteParts
  ) -> [ServiceGroupConfiguration.ServiceConfiguration] {
    let indexes = configuration.indexesFile.map { path in
      essential(
        IndexesFile(path: path, queries: parts.queries, logger: logger(for: "firestore"))
      )
    }
    return [indexes].compactMap(\.self) + parts.rulesFiles.map { essential($0) }
  }

  /// Configures a service whose failure stops the group gracefully.
  private func essential(
    _ service: any Service
  ) -> ServiceGroupConfiguration.ServiceConfiguration {
    .init(
      service: StoppableService(body: service),
      failureTerminationBehavior: .gracefullyShutdownGroup
    )
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
          ? service.listening(at: .tcp(host: configuration.host(of: name), port: 0)) : nil,
        logger: logger(for: name.rawValue)
      )
    )
  }

  func noteListening(_ service: SuiteService, _ address: ServerAddress) {
    addresses.withLock {
      $0[service] = ServiceAddress(
        host: configuration.host(of: service),
        port: address.port ?? 0
      )
    }
    listener.yield()
  }

  func logger(for label: String) -> Logger {
    var logger = Logger(label: label)
    logger.logLevel = self.logger.logLevel
    return logger
  }

  var description: SuiteDescription {
    SuiteDescription(
      project: configuration.project,
      pid: getpid(),
      services: Dictionary(
        uniqueKeysWithValues: addresses.withLock { $0 }.map { ($0.key.rawValue, $0.value) }
      ),
      openTo: networkAccessPolicy(of: mostExposed).description,
      serverFile: ServerFile.path(folder: folder.path),
      replacedFolder: configuration.isEphemeral && !configuration.isPrivate
        ? ServerFile.canonical(configuration.dataFolder) : nil
    )
  }
}

/// A wrapper that does not treat the interruption by a stop as a failure.
private struct StoppableService: Service {
  let body: any Service

  func run() async throws {
    do {
      try await body.run()
    } catch let error as CancellationError {
      guard Task.isCancelled || Task.isShuttingDownGracefully else { throw error }
    }
  }
}

/// The service that records whether the server survives a deployment's start.
private struct StartSurvival: Service {
  let starts: StartWatch

  func run() async {
    await cancelWhenGracefulShutdown { await starts.run() }
  }
}

/// The work that runs once after the services are up and that a shutdown may interrupt.
///
/// The service stays until shutdown, because the group ends when one of its services returns.
private struct FirstDeployment: Service {
  let body: @Sendable () async throws -> Void

  func run() async throws {
    try await cancelWhenGracefulShutdown { try await body() }
    // Cancellation means that another service has failed, and that failure is reported.
    try? await gracefulShutdown()
  }
}
