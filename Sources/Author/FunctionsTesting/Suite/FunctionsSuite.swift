public import FirestoreClient
public import FunctionsRuntime
import StatusCodes
import TriggerDelivery

/// The environment of a test: the database, the external servers, and the functions' runs.
///
/// ```swift
/// try await suite.firestore.document("users/tina").set(User(name: "Tina"))
/// try await suite.settle()
/// #expect(suite.runCount(of: functions.welcome) == 1)
/// ```
///
/// The suite is valid only inside the closure that receives it.
public struct FunctionsSuite: Sendable {
  let core: SuiteCore

  /// The database, with the access rights of the server client.
  public var firestore: Firestore { core.environment.firestore }

  /// Returns the database with the access rights of an identity.
  ///
  /// A string literal is a user's id.
  public func firestore(as token: TestToken) -> Firestore {
    firestore.acting(as: token.credential(project: core.environment.project))
  }

  /// The scripted responses of all external servers.
  public var http: TestHTTP { core.environment.http }

  /// The suite's time, which stands still until `settle` or the test advances it.
  public var clock: SuiteClock { SuiteClock(core: core) }

  // MARK: - Events

  /// Waits until every event has been handled, including events that functions cause.
  ///
  /// The time jumps forward to pending retries and tasks, however late, so settling takes only as
  /// long as the functions run. It does not jump forward to schedules, because these never end. A
  /// scheduled run takes place only if the time passes it on the way to a retry or task; use
  /// `clock` to advance the time to it. A failed function does not throw; see `deliveries(of:)` and
  /// `runs(of:)`.
  ///
  /// Records an issue at the caller's line, and returns, in one of these cases:
  ///
  /// - No function has begun for `timeout`, or more than `runsMax` have begun, for example because
  ///   functions trigger each other. The issue names the pending events.
  /// - Functions sent HTTP requests for which no response is scripted. The issue lists them.
  ///
  /// Outside a test of Swift Testing or XCTest it throws them as a `FunctionsTestingError` of the
  /// kind `notSettled` or `unscriptedRequests`. Throws `suiteFailed` if the suite itself failed.
  public func settle(
    timeout: Duration = .seconds(30),
    runsMax: Int = 100_000,
    fileID: StaticString = #fileID,
    filePath: StaticString = #filePath,
    line: UInt = #line,
    column: UInt = #column
  ) async throws {
    try await CallSite(fileID, filePath, line, column).record {
      try await core.settle(timeout: timeout, runsMax: runsMax)
    }
  }

  /// Returns the deliveries of events to all functions with their states, oldest first.
  ///
  /// At least the last 10,000 settled deliveries are known. Throws only if the suite itself has
  /// failed.
  public func deliveries() async throws -> [EventDelivery] {
    try await core.deliveries.administration.list(function: nil, limit: .max).reversed().map {
      EventDelivery($0)
    }
  }

  /// Returns the deliveries of events to a function with their states, oldest first.
  ///
  /// Throws only if the suite itself has failed.
  public func deliveries(of function: some CloudFunction) async throws -> [EventDelivery] {
    try await core.deliveries.administration.list(function: function.name, limit: .max).reversed()
      .map { EventDelivery($0) }
  }

  /// Redelivers earlier events to a function, as if the confirmation of success had been lost.
  ///
  /// Applies to the settled events of one document, or to all settled events if `document` is nil.
  /// Call `settle` afterwards. Throws `noSuchEvent` if there are none.
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

  /// Redelivers one earlier event.
  ///
  /// Call `settle` afterwards.
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

  //MARK: - Runs and logs

  /// Returns how often a function has run, counting calls and each attempt at an event.
  public func runCount(of function: some CloudFunction) -> Int {
    core.recorder.count(of: function.name)
  }

  /// The runs of all functions in the order in which they began.
  ///
  /// The last 50,000 runs are known.
  public var runs: [FunctionRun] { core.recorder.runs(of: nil) }

  /// Returns the runs of a function in the order in which they began.
  public func runs(of function: some CloudFunction) -> [FunctionRun] {
    core.recorder.runs(of: function.name)
  }

  /// The lines that all functions have logged with the loggers of their events and requests.
  ///
  /// The last 50,000 lines are known.
  public var logs: [FunctionLogLine] { core.recorder.lines(of: nil) }

  /// Returns the lines that a function has logged with the loggers of its events and requests.
  public func logs(of function: some CloudFunction) -> [FunctionLogLine] {
    core.recorder.lines(of: function.name)
  }
}
