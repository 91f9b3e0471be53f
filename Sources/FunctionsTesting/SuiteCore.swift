import Events
import FunctionsRuntime
import Identity
import Invocation
import Logging
import RuntimeSupport
import ServiceLifecycle
import Synchronization
import TriggerDelivery

/// One suite at work: its services, its functions and what they did.
final class SuiteCore: Sendable {
  let world: FunctionsWorld
  let recorder = RunRecorder()
  let deliveries: DeliveryService
  let invoker: RecordingInvoker
  private let time: SuiteTime
  private let functions: [String: FunctionDefinition]
  private let endpoints: [String: FunctionEndpoint]
  private let services: [any Service]
  private let isFaulty: Bool
  private let order: Mutex<FaultyOrder?>
  private let failure = Mutex<(any Error)?>(nil)
  /// Fires when a service has failed.
  let failed = Signal()

  /// Throws `invalidFunctions` when the app cannot be deployed.
  init(app: FunctionsApp, parts: SuiteParts, faults: DeliveryFaults?) throws {
    do {
      endpoints = try app.manifest().endpoints
      invoker = RecordingInvoker(
        host: try FunctionHost(
          app: app,
          credentials: CredentialReader(mode: .emulator),
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
    world = parts.world
    time = parts.time
    isFaulty = faults != nil
    order = Mutex(faults.map { FaultyOrder($0) })
    deliveries = DeliveryService(
      storage: parts.storage,
      tailer: parts.tailer,
      invoker: invoker,
      configuration: .init(
        heldMax: Self.deliveriesMax,
        startsByItself: faults == nil
      ),
      now: { [time = parts.time] in time.now },
      logger: Logger(label: "suite") { _ in SwiftLogNoOpLogHandler() }
    )
    services = [parts.tailer, parts.store, deliveries]
  }

  /// A seeded order needs to see all that could come next; no test has as much.
  private static let deliveriesMax = 100_000

  /// The declaration of a function; nil when the suite has none of that name.
  func function(_ name: String) -> FunctionDefinition? { functions[name] }

  /// Makes the functions known to the triggers.
  func deploy() async throws {
    do {
      try await deliveries.updateFunctions(endpoints)
    } catch {
      throw FunctionsTestingError(.invalidFunctions, "\(error)")
    }
  }

  // MARK: - Life

  /// Runs the services around `test`; all have ended when it returns.
  func run<Output>(
    isolation: isolated (any Actor)? = #isolation,
    _ test: () async throws -> Output
  ) async throws -> Output {
    let output = try await withThrowingTaskGroup(of: Void.self) { group in
      for service in services { group.addTask { await self.keep(service) } }
      defer { group.cancelAll() }
      return try await test()
    }
    try checkServices()
    try checkRequests()
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

  private func checkServices() throws {
    guard let error = failure.withLock({ $0 }) else { return }
    throw FunctionsTestingError(.suiteFailed, "The suite failed inside: \(error)")
  }

  private func checkRequests() throws {
    let unscripted = world.http.takeUnscripted()
    guard !unscripted.isEmpty else { return }
    let list = unscripted.prefix(Self.namedMax).joined(separator: ", ")
    let surplus = unscripted.count - Self.namedMax
    let more = surplus > 0 ? " and \(surplus) more" : ""
    throw FunctionsTestingError(
      .unscriptedRequests,
      "Nothing is scripted for these requests: \(list)\(more). Script them with "
        + "http.on(METHOD, URL).respond(…), or mount a transport."
    )
  }

  // MARK: - Settling

  private enum End {
    case settled
    case failed
    case timedOut(pending: String)
  }

  func settle(timeout: Duration, runsMax: Int) async throws {
    let runsBefore = recorder.count
    let end = try await withThrowingTaskGroup(of: End.self) { group in
      group.addTask {
        try await self.settleAll()
        return .settled
      }
      group.addTask {
        await self.failed.fired(after: 0)
        return .failed
      }
      group.addTask {
        try await self.standstill(of: timeout, after: runsBefore + runsMax)
        // Asked here, while what is pending still runs.
        return .timedOut(pending: try await self.pending())
      }
      defer { group.cancelAll() }
      return try await group.next() ?? .settled
    }
    try Task.checkCancellation()
    try checkServices()
    if case .timedOut(let pending) = end {
      let runs = recorder.count - runsBefore
      throw FunctionsTestingError(
        .notSettled,
        "Not settled: functions ran \(runs) times, and for \(timeout) none began or they never "
          + "came to an end. Pending: \(pending)."
      )
    }
    try checkRequests()
  }

  /// Returns when no function has begun for `timeout`, or more than `runsMax` have.
  ///
  /// Time alone would say little: on a busy machine many tests share few threads.
  private func standstill(of timeout: Duration, after runsMax: Int) async throws {
    var seen: Int
    repeat {
      seen = recorder.count
      try await Task.sleep(for: timeout)
    } while recorder.count != seen && recorder.count <= runsMax
  }

  /// Returns when no event is left; what is due later is jumped to.
  private func settleAll() async throws {
    while true {
      try await deliveries.waitUntilIdle()
      try Task.checkCancellation()
      if isFaulty, try await deliverNext() { continue }
      guard let due = await deliveries.nextDue else { return }
      time.advance(to: due)
      await deliveries.timeJumped()
    }
  }

  /// Delivers what the seed wants next; false when nothing could be delivered now.
  private func deliverNext() async throws -> Bool {
    let startable = await deliveries.startable()
    guard let next = order.withLock({ $0?.next(of: startable) }) else { return false }
    guard await deliveries.deliver(next.id) else { return true }
    let state = try await deliveries.show(next.id).state
    if state == .succeeded, order.withLock({ $0?.repeats(next.id) }) == true {
      _ = try await deliveries.redeliver(next.id)
    }
    return true
  }

  private func pending() async throws -> String {
    var described: [String] = []
    let pending = try await deliveries.list(state: .pending, limit: Self.deliveriesMax)
    for delivery in pending.reversed().prefix(Self.namedMax) {
      let isRunning = await deliveries.isRunning(delivery.id)
      let reason = delivery.lastError.map { " after \"\($0)\"" } ?? ""
      described.append(
        "\(delivery.id.function) for \(delivery.kind.rawValue) \(delivery.change.name.path) "
          + "(\(isRunning ? "running" : "waiting"), attempt \(delivery.attempts + 1)\(reason))"
      )
    }
    if pending.count > Self.namedMax { described.append("\(pending.count - Self.namedMax) more") }
    return described.isEmpty
      ? "events that have not reached the triggers yet" : described.joined(separator: "; ")
  }

  /// Names in one error message.
  private static let namedMax = 10
}
