import AuthEmulator
import Events
import FirestoreEmulator
import FunctionsRuntime
import Identity
import Logging
import Manifests
import ServiceLifecycle
import Synchronization
import TriggerDelivery

/// A running suite with its services, its functions and the record of their runs.
final class SuiteCore: Sendable {
  let environment: TestEnvironment
  let rules: RulesPolicy
  let recorder = RunRecorder()
  let deliveries: DeliveryService
  let invoker: RecordingInvoker
  let auth: AuthTransport
  let time: VirtualTime
  let functions: [String: FunctionDefinition]
  let isFaulty: Bool
  let order: Mutex<FaultyOrder?>
  /// The number of runs of each function at the last check.
  let mark = Mutex<[String: Int]>([:])
  private let endpoints: [String: FunctionEndpoint]
  private let tasks: SuiteTasks
  private let services: [any Service]
  private let faultPlan: FaultPlan?
  private let failure = Mutex<(any Error)?>(nil)
  /// A signal that fires when a service has failed.
  let failed = Signal()

  /// Throws `invalidFunctions` if the app cannot be deployed.
  init(app: FunctionsApp, parts: SuiteParts, faults: DeliveryFaults?) throws {
    tasks = SuiteTasks(time: parts.time)
    do {
      endpoints = try app.manifest().endpoints
      invoker = RecordingInvoker(
        host: try FunctionHost(
          app: app,
          credentials: CredentialReader(mode: .emulator),
          tasks: tasks,
          clock: FunctionClock.TestClock { [time = parts.time] in time.now },
          makeLogger: recorder.logger(of:)
        ),
        timeouts: Dictionary(
          app.functions.compactMap { function in
            function.options.timeout.map { (function.name, $0) }
          }
        ) { first, _ in first },
        recorder: recorder
      )
    } catch {
      throw FunctionsTestingError(.invalidFunctions, "\(error)")
    }
    functions = Dictionary(app.functions.map { ($0.name, $0) }) { first, _ in first }
    environment = parts.environment
    rules = parts.rules
    time = parts.time
    isFaulty = faults != nil
    order = Mutex(faults.map { FaultyOrder($0) })
    faultPlan = faults?.plan
    deliveries = DeliveryService(
      storage: parts.storage,
      tailer: parts.tailer,
      invoker: invoker,
      configuration: .init(
        project: parts.environment.project,
        startsByItself: faults == nil,
        isOrdered: faults?.reordering != true
      ),
      now: { [time = parts.time] in time.now },
      logger: Logger(label: "suite") { _ in SwiftLogNoOpLogHandler() }
    )
    services = [parts.tailer, parts.store, deliveries]
    auth = parts.auth
    let deployed = endpoints
    auth.connect(
      AuthService(
        store: parts.accounts,
        blockingFunctions: DeployedBlockingFunctions(invoker: invoker) { deployed },
        logger: Logger(label: "suite") { _ in SwiftLogNoOpLogHandler() }
      )
    )
    tasks.connect(to: deliveries)
  }

  /// Returns the function with a name; throws `noSuchFunction` if the suite does not have it.
  @discardableResult
  func definition(named name: String) throws -> FunctionDefinition {
    guard let definition = functions[name] else {
      throw FunctionsTestingError(
        .noSuchFunction,
        "There is no function \(name) in this suite; there are: "
          + functions.keys.sorted().joined(separator: ", ") + "."
      )
    }
    return definition
  }

  func definition(of function: some CloudFunction) throws -> FunctionDefinition {
    try definition(named: function.name)
  }

  func wrongKind(_ name: String, _ deed: String) -> FunctionsTestingError {
    FunctionsTestingError(.noSuchFunction, "\(name) is not a function that \(deed).")
  }

  /// Registers the functions with the trigger deliveries.
  func deploy() async throws {
    do {
      deliveries.faults = faultPlan
      try deliveries.updateFunctions(endpoints)
    } catch {
      throw FunctionsTestingError(.invalidFunctions, "\(error)")
    }
  }

  //MARK: - Lifecycle

  /// Runs the services while `test` runs.
  ///
  /// All of them have ended when it returns.
  func run<Output>(
    isolation: isolated (any Actor)? = #isolation,
    _ test: () async throws -> Output
  ) async throws -> Output {
    let result: Result<Output, any Error>
    do {
      result = .success(
        try await withThrowingTaskGroup(of: Void.self) { group in
          for service in services { group.addTask { await self.keep(service) } }
          defer { group.cancelAll() }
          let queueing = TaskQueueing(enqueuer: tasks, options: functions.mapValues(\.options))
          return try await TaskQueueing.$current.withValue(queueing) {
            let clock = FunctionClock.TestClock { [time] in time.now }
            return try await FunctionClock.$test.withValue(clock) { try await test() }
          }
        }
      )
    } catch {
      result = .failure(error)
    }
    await invoker.begun.ended()
    let output = try result.get()
    try checkServices()
    return output
  }

  private func keep(_ service: any Service) async {
    do {
      try await service.run()
    } catch {
      guard !Task.isCancelled else { return }
      failure.withLock { if $0 == nil { $0 = error } }
      failed.fire()
    }
  }

  func checkServices() throws {
    guard let error = failure.withLock({ $0 }) else { return }
    throw FunctionsTestingError(.suiteFailed, "The suite failed inside: \(error)")
  }

  func checkRequests() throws {
    let unscripted = environment.http.takeUnscripted()
    guard !unscripted.isEmpty else { return }
    let counts = Dictionary(unscripted.map { ($0, 1) }, uniquingKeysWith: +)
    var seen: Set<String> = []
    let names = unscripted.filter { seen.insert($0).inserted }
    let list = names.prefix(Self.namedMax).map { name in
      counts[name].map { $0 > 1 ? "\(name) (\($0) times)" : name } ?? name
    }.joined(separator: ", ")
    let surplus = names.count - Self.namedMax
    let more = surplus > 0 ? " and \(surplus) more" : ""
    throw FunctionsTestingError(
      .unscriptedRequests,
      "Nothing is scripted for \(names.count == 1 ? "this request" : "these requests"): "
        + "\(list)\(more). Script \(names.count == 1 ? "it" : "them") with "
        + "http.on(METHOD, URL).respond(…), or mount a transport."
    )
  }

  /// The maximum number of names that an error message lists.
  static let namedMax = 10
}
