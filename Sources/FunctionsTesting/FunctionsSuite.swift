public import FirestoreClient
import FunctionsRuntime
import RuntimeSupport
import TriggerDelivery

/// What a test holds in its hand: the database, the outside world and what the functions did.
///
/// Valid inside the closure that it was given to.
public struct FunctionsSuite: Sendable {
  let core: SuiteCore

  /// The database, with the rights of the server client.
  public var firestore: Firestore { core.world.firestore }

  /// The same database, used by somebody else; a string literal is a user's id.
  public func firestore(as token: TestToken) -> Firestore {
    firestore.acting(as: token.credential(project: core.world.project))
  }

  /// Every server outside, as the test scripts it.
  public var http: TestHTTP { core.world.http }

  /// The suite's time, which stands still until `settle` or the test lets it pass.
  public var clock: SuiteClock { SuiteClock(core: core) }

  // MARK: - Events

  /// Returns when every event has come to its end, those included that functions caused meanwhile.
  ///
  /// Retries and tasks that are due later are jumped to, however late, so this takes as long as the
  /// functions run and no longer. Schedules by themselves are not: they have no end, and run only
  /// where time passes them on the way to something else; let it pass with `clock`. A function that fails is no error here; see `deliveries(of:)` and `runs(of:)`. Throws
  /// `FunctionsTestingError`: `notSettled` names what is pending when for `timeout` no function has
  /// begun, or when more than `runsMax` have, as functions that set off each other do; and
  /// `unscriptedRequests` the HTTP requests that nothing was scripted for.
  public func settle(timeout: Duration = .seconds(30), runsMax: Int = 100_000) async throws {
    try await core.settle(timeout: timeout, runsMax: runsMax)
  }

  /// The events that have reached a function, or any, and where they stand; the oldest first.
  ///
  /// At least the last 10 000 of those that have settled are known.
  public func deliveries(of function: String? = nil) async throws -> [EventDelivery] {
    try await core.deliveries.list(function: function, limit: .max).reversed()
      .map { EventDelivery($0) }
  }

  /// Delivers earlier events to a function once more, as if the word of their end had been lost.
  ///
  /// Those of one document, or all that have settled; `settle` afterwards. Throws `noSuchEvent` when
  /// there is none.
  @discardableResult
  public func redeliver(
    _ function: String,
    document: String? = nil
  ) async throws -> [EventDelivery] {
    let settled = try await deliveries(of: function).filter { delivery in
      delivery.state != .pending && (document == nil || delivery.document == document)
    }
    guard !settled.isEmpty else {
      throw FunctionsTestingError(
        .noSuchEvent,
        "No settled event of \(document ?? "any document") has reached \(function); "
          + "write the document and settle first."
      )
    }
    for delivery in settled { try await redeliver(delivery) }
    return settled
  }

  /// Delivers one earlier event once more; `settle` afterwards.
  ///
  /// Throws `noSuchEvent` for one that is pending or not known any more.
  public func redeliver(_ delivery: EventDelivery) async throws {
    do {
      guard let id = DeliveryID(delivery.id) else { return }
      _ = try await core.deliveries.redeliver(id)
    } catch let error as StatusError {
      throw FunctionsTestingError(.noSuchEvent, error.statusMessage)
    }
  }

  // MARK: - What functions did

  /// How often a function has run: calls, and attempts at events.
  public func calls(of function: String) -> Int { core.recorder.count(of: function) }

  /// The runs of a function, or of all, in the order in which they began.
  ///
  /// At least the last 50 000 are known.
  public func runs(of function: String? = nil) -> [FunctionRun] { core.recorder.runs(of: function) }

  /// What a function, or any, has logged through the loggers of its events and requests.
  ///
  /// At least the last 50 000 lines are known.
  public func logs(of function: String? = nil) -> [FunctionLogLine] {
    core.recorder.lines(of: function)
  }
}
