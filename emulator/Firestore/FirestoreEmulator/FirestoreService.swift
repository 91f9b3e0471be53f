import DocumentModel
package import DocumentStore
import FlowControl
package import HTTP2Server
package import HTTPSupport
import Identifiers
package import Identity
package import Logging
import NIOCore
import StatusCodes
import WebChannel

/// The Firestore API for clients: gRPC, REST and WebChannel on one port, over a `DocumentDatabase`.
///
/// Each RPC has one handler, which takes the request's message and is independent of transports.
/// All transports call it; a test in the same process can call it directly.
package final class FirestoreService: Sendable {
  let store: DocumentDatabase
  let makeID: @Sendable () -> String
  let logger: Logger
  let exporter: Exporter?
  let rules: RulesPolicy?
  let webChannels: WebChannels
  /// The memory for requests and for responses that clients have not read yet; nil for no limit.
  let budget: TransferBudget?
  /// Limits how many requests build their whole response in memory at a time.
  private let wholeReads = ReadGate(8)
  let project: String
  private let credentials: CredentialReader
  private let loggedProjects = OnceEach()
  private let warnsOfOtherProjects: Bool

  /// Creates the API of a store; `project` is the suite's project.
  ///
  /// Each project's documents are separate, and any project may be used. A project other than the
  /// suite's fires no triggers, so its first use is logged. `makeID` generates the names of
  /// documents created without an ID. Without an `exporter`, exports throw `UNIMPLEMENTED`. `rules`
  /// is the store's policy if clients may replace its rules. `budget` limits the memory of all slow
  /// clients together.
  package init(
    store: DocumentDatabase,
    project: String,
    credentials: CredentialReader = CredentialReader(mode: .emulator),
    makeID: @escaping @Sendable () -> String = { RandomID.make() },
    exporter: Exporter? = nil,
    rules: RulesPolicy? = nil,
    budget: TransferBudget? = nil,
    warnsOfOtherProjects: Bool = true,
    logger: Logger
  ) {
    self.store = store
    self.project = project
    self.credentials = credentials
    self.makeID = makeID
    self.exporter = exporter
    self.rules = rules
    self.budget = budget
    self.warnsOfOtherProjects = warnsOfOtherProjects
    webChannels = WebChannels(budget: budget)
    self.logger = logger
  }

  /// Returns a service with one listening socket for all transports.
  package func httpService(
    address: ServerAddress,
    grpcConfiguration: GRPCServer.Configuration = FirestoreService.grpcConfiguration,
    configuration: HTTPService.Configuration = HTTPService.Configuration(),
    roster: ConnectionRoster? = nil,
    onListening: @escaping @Sendable (ServerAddress) async -> Void = { _ in },
    screen: @escaping HTTPService.Screen = { _ in nil }
  ) -> HTTPService {
    let server = GRPCServer(
      services: [grpcService],
      rest: { request, channel in
        if let refusal = screen(request) { return refusal }
        return await self.respond(to: request, HTTPContext(channel: channel))
      },
      configuration: grpcConfiguration,
      budget: budget,
      logger: logger
    )
    return HTTPService(
      address: address,
      http2: server.configure,
      configuration: configuration,
      roster: roster,
      budget: budget,
      logger: logger,
      onListening: onListening,
      onQuiesce: { self.webChannels.endAll() },
      screen: screen,
      outlivesClient: { request in
        RESTRoute(method: request.method, path: request.path)?.outlivesClient ?? false
      }
    ) { await self.respond(to: $0, $1) }
  }

  /// The gRPC settings, with production's status code for a request that is too large.
  ///
  /// Clients would retry `RESOURCE_EXHAUSTED` although the request would still be too large.
  package static var grpcConfiguration: GRPCServer.Configuration {
    GRPCServer.Configuration(requestTooLargeCode: .invalidArgument)
  }

  /// Returns the caller's identity according to a REST request's `Authorization` header.
  package func authenticate(authorization: String?) throws -> AuthContext {
    try credentials.authenticate(authorization: authorization)
  }

  /// Builds a large response; only a few are built at a time.
  ///
  /// `body` must not wait for locks or clients.
  func gather<Answer: Sendable>(_ body: () async throws -> Answer) async throws -> Answer {
    await wholeReads.enter()
    defer { wholeReads.leave() }
    // The client may have disconnected during the wait.
    try Task.checkCancellation()
    return try await body()
  }

  /// Logs the first use of each project other than the suite's.
  func note(_ database: DatabaseName) {
    guard warnsOfOtherProjects, database.project != project, loggedProjects.isNew(database.project)
    else { return }
    logger.warning(
      """
      Requests for project \(database.project); this suite serves \(project). What is written \
      there fires no functions. Correct the client's project, or start with --project.
      """
    )
  }
}
