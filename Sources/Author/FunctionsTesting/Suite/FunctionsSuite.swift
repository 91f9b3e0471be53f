public import FirestoreClient
public import FunctionsRuntime
import RuntimeSupport
import TriggerDelivery

/// What a test works with: the database, the outside world and what the functions did.
///
/// ```swift
/// try await suite.firestore.document("users/tina").set(User(name: "Tina"))
/// try await suite.settle()
/// #expect(suite.runCount(of: functions.welcome) == 1)
/// ```
///
/// It is valid inside the closure that receives it.
public struct FunctionsSuite: Sendable {
  let core: SuiteCore

  /// The database, with the rights of the server client.
  public var firestore: Firestore { core.world.firestore }

  /// The same database with somebody else's rights; a string literal is a user's id.
  public func firestore(as token: TestToken) -> Firestore {
    firestore.acting(as: token.credential(project: core.world.project))
  }

  /// Every outside server, as the test scripts it.
  public var http: TestHTTP { core.world.http }

  /// The suite's time, which stands still until `settle` or the test lets it pass.
  public var clock: SuiteClock { SuiteClock(core: core) }

  // MARK: - Events

  /// Returns when every event has ended, including those that functions caused meanwhile.
  ///
  /// Time jumps to later retries and tasks, however late, so this takes only as long as the
  /// functions run. It does not jump to schedules: they have no end, and run only when time passes
  /// them on the way to something else; let it pass with `clock`. A function that fails is no error
  /// here; see `deliveries(of:)` and `runs(of:)`.
  ///
  /// Throws `FunctionsTestingError`: `notSettled` names what is pending when no function has begun
  /// for `timeout`, or when more than `runsMax` have, as when functions set off each other; and
  /// `unscriptedRequests` names the HTTP requests without a script.
  public func settle(timeout: Duration = .seconds(30), runsMax: Int = 100_000) async throws {
    try await core.settle(timeout: timeout, runsMax: runsMax)
  }

  /// The events that have reached any function, and their states, oldest first.
  ///
  /// At least the last 10 000 settled ones are known.
  /// Throws only when the suite itself has failed.
  public func deliveries() async throws -> [EventDelivery] {
    try await core.deliveries.administration.list(function: nil, limit: .max).reversed().map {
      EventDelivery($0)
    }
  }

  /// The events that have reached a function, and their states, oldest first.
  ///
  /// Throws only when the suite itself has failed.
  public func deliveries(of function: some CloudFunction) async throws -> [EventDelivery] {
    try await core.deliveries.administration.list(function: function.name, limit: .max).reversed()
      .map { EventDelivery($0) }
  }

  /// Redelivers earlier events to a function, as if the word of their end had been lost.
  ///
  /// Redelivers the events of one document, or all that have settled; call `settle` afterwards.
  /// Throws `noSuchEvent` when there is none.
  @discardableResult
  public func redeliver(
    _ function: some CloudFunction,
    document: String? = nil
  ) async throws -> [EventDelivery] {
    let settled = try await deliveries(of: function).filter { delivery in
      delivery.state != .pending && (document == nil || delivery.document == document)
    }
    guard !settled.isEmpty else {
      throw FunctionsTestingError(
        .noSuchEvent,
        "No settled event of \(document ?? "any document") has reached \(function.name); "
          + "write the document and settle first."
      )
    }
    for delivery in settled { try await redeliver(delivery) }
    return settled
  }

  /// Redelivers one earlier event; call `settle` afterwards.
  ///
  /// Throws `noSuchEvent` for an event that is pending or no longer known.
  public func redeliver(_ delivery: EventDelivery) async throws {
    do {
      guard let id = DeliveryID(delivery.id) else { return }
      _ = try await core.deliveries.administration.redeliver(id)
    } catch let error as StatusError {
      throw FunctionsTestingError(.noSuchEvent, error.statusMessage)
    }
  }

  // MARK: - What functions did

  /// How often a function has run, counting its calls and the attempts at its events.
  public func runCount(of function: some CloudFunction) -> Int {
    core.recorder.count(of: function.name)
  }

  /// The runs of all functions, in the order in which they began.
  ///
  /// At least the last 50 000 runs are known.
  public var runs: [FunctionRun] { core.recorder.runs(of: nil) }

  /// The runs of a function, in the order in which they began.
  public func runs(of function: some CloudFunction) -> [FunctionRun] {
    core.recorder.runs(of: function.name)
  }

  /// The lines that all functions have logged through the loggers of their events and requests.
  ///
  /// At least the last 50 000 lines are known.
  public var logs: [FunctionLogLine] { core.recorder.lines(of: nil) }

  /// The lines that a function has logged through the loggers of its events and requests.
  public func logs(of function: some CloudFunction) -> [FunctionLogLine] {
    core.recorder.lines(of: function.name)
  }
}
