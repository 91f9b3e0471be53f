import AuthEmulator
import Console
import DataExport
import Deployment
import FirestoreEmulator
import FunctionsGateway
import HTTP2Server
import HTTPMessages
import HTTPSupport
import RealtimeDatabaseEmulator
import StatusCodes
import StorageEngine
import Synchronization
import TaskQueues
import TriggerDelivery
import VectorEmulator
import WorkerPool

/// The services on the suite's ports.
extension Suite {
  func firestore(_ parts: SuiteParts) -> FirestoreService {
    FirestoreService(
      store: parts.documents,
      project: configuration.project,
      exporter: { [folder, transfer = parts.transfer] request in
        let base = request.directory.hasPrefix("/") ? "" : folder.path + "/exports/"
        let path = "\(base)\(request.directory)/\(request.name)"
        return try await transfer.exporter.export(request.database, to: path).path
      },
      rules: parts.rules,
      budget: budget,
      warnsOfOtherProjects: configuration.isSingleProject,
      logger: logger(for: "firestore")
    )
  }

  func firestoreService(_ service: FirestoreService) -> HTTPService {
    service.httpService(
      address: address(.firestore),
      roster: roster,
      onListening: { [self] in noteListening(.firestore, $0) },
      screen: screen(wrongPort(of: .firestore))
    )
  }

  func database(_ parts: SuiteParts) -> RealtimeDatabaseService {
    RealtimeDatabaseService(
      database: parts.database,
      budget: budget,
      logger: logger(for: "database")
    )
  }

  func databaseService(_ service: RealtimeDatabaseService) -> HTTPService {
    http(.database, upgrader: service.upgrader, onQuiesce: { service.endAll() }) { request, _ in
      await service.respond(to: request)
    }
  }

  func authService(_ parts: SuiteParts) -> HTTPService {
    http(.auth) { [auth = parts.auth] request, _ in await auth.respond(to: request) }
  }

  func vectorService(_ service: VectorService) -> HTTPService {
    http(.vectors) { request, _ in await service.respond(to: request) }
  }

  func functions(_ parts: SuiteParts) -> FunctionsService {
    FunctionsService(
      project: configuration.project,
      functions: { [fleet = parts.fleet] in fleet.endpoints },
      unserved: { [fleet = parts.fleet] in fleet.unserved?.reason },
      invoker: parts.fleet,
      folder: configuration.functions?.source.folder,
      isEnabled: { [triggers, deliveries = parts.deliveries] in
        let isEnabled = triggers.isEnabled
        // This closure is called once per event.
        if !isEnabled { deliveries.noteSkipped() }
        return isEnabled
      },
      publish: { [deliveries = parts.deliveries] in try await deliveries.publish([$0]) },
      logger: logger(for: "functions")
    )
  }

  func functionsService(_ service: FunctionsService) -> HTTPService {
    http(.functions, immediate: service) { await service.respond(to: $0, $1) }
  }

  func taskQueues(_ parts: SuiteParts) -> TaskQueueService {
    TaskQueueService(
      project: configuration.project,
      backend: parts.deliveries.tasks,
      functionURL: { [self] location, function in
        let functions = addresses.withLock { $0[.functions] }
        return "http://\(functions?.host ?? ""):\(functions?.port ?? 0)/"
          + "\(configuration.project)/\(location)/\(function)"
      },
      unserved: { [fleet = parts.fleet] in fleet.unserved?.reason },
      reachesLoopback: networkAccessPolicy(of: .tasks).isLoopback,
      now: { [time = parts.time] in time.now },
      logger: logger(for: "tasks")
    )
  }

  func taskQueueService(_ service: TaskQueueService) -> HTTPService {
    http(.tasks) { request, _ in await service.respond(to: request) }
  }

  func hubService() -> HTTPService {
    http(.hub) { [self] in await respond(to: $0, $1) }
  }

  /// Responds to a request to the hub.
  private func respond(
    to request: Request,
    _ context: HTTPContext,
    isConsole: Bool = false
  ) async -> Response {
    guard let api = control.withLock({ $0 }) else {
      return .error(.unavailable, "The suite is starting; try again in a moment.")
    }
    return await api.respond(to: request, context, isConsole: isConsole)
  }

  /// Creates the console; its page reaches the other services through the console's own port.
  func consoleService(
    _ parts: SuiteParts,
    _ firestore: FirestoreService,
    _ database: RealtimeDatabaseService,
    _ functions: FunctionsService,
    _ tasks: TaskQueueService,
    _ vectors: VectorService
  ) -> HTTPService {
    let service = ConsoleService(
      suiteToken: SecretToken(token),
      description: { [self] in
        ConsoleDescription(suite: description, version: configuration.version)
      },
      backends: [
        "hub": { [self] in await respond(to: $0, $1, isConsole: true) },
        "firestore": { request, _ in await firestore.respond(to: request) },
        "database": { request, _ in await database.respond(to: request) },
        "functions": { await functions.respond(to: $0, $1) },
        "tasks": { request, _ in await tasks.respond(to: request) },
        "auth": { [auth = parts.auth] request, _ in await auth.respond(to: request) },
        "vectors": { request, _ in await vectors.respond(to: request) },
      ]
    )
    return http(.ui) { await service.respond(to: $0, $1) }
  }

  private func http(
    _ service: SuiteService,
    immediate: (any ImmediateResponder)? = nil,
    upgrader: HTTPService.Upgrader? = nil,
    onQuiesce: @escaping @Sendable () -> Void = {},
    responder: @escaping HTTPService.Responder
  ) -> HTTPService {
    let wrongPort = wrongPort(of: service)
    return HTTPService(
      address: address(service),
      http2: wrongPort.grpcServer().configure,
      roster: roster,
      budget: budget,
      logger: logger(for: service.rawValue),
      onListening: { [self] in noteListening(service, $0) },
      onQuiesce: onQuiesce,
      screen: screen(wrongPort),
      immediate: immediate,
      upgrader: upgrader,
      responder: responder
    )
  }

  private func wrongPort(of service: SuiteService) -> WrongPort {
    WrongPort(
      of: service,
      project: configuration.project,
      addresses: { [self] in addresses.withLock { $0 } },
      logger: logger(for: service.rawValue)
    )
  }

  /// Returns the policy for which clients and web origins may use a service's port.
  func networkAccessPolicy(of service: SuiteService) -> NetworkAccessPolicy {
    NetworkAccessPolicy(
      listeningOn: configuration.host(of: service),
      allowing: configuration.allowedOrigins
    )
  }

  /// A service that other machines reach, if there is one.
  var mostExposed: SuiteService {
    configuration.services.first { !networkAccessPolicy(of: $0).isLoopback } ?? .hub
  }

  /// Refuses requests that a foreign web page may have sent, and clients at the wrong port.
  private func screen(_ wrongPort: WrongPort) -> HTTPService.Screen {
    let policy = networkAccessPolicy(of: wrongPort.service)
    return { request in
      policy.refusal(of: request.head).map { .error($0) } ?? wrongPort.refusal(of: request)
    }
  }

  private func address(_ service: SuiteService) -> ServerAddress {
    .tcp(host: configuration.host(of: service), port: configuration.ports[service] ?? 0)
  }
}

/// The facts about the suite that the console's page needs: addresses and version.
private struct ConsoleDescription: Encodable, Sendable {
  var project: String
  var services: [String: ServiceAddress]
  var version: String

  init(suite: SuiteDescription, version: String) {
    project = suite.project
    services = suite.services
    self.version = version
  }
}
