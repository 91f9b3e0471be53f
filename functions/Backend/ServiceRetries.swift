import FirestoreClient

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The policy for retries of calls to a service.
public struct ServiceRetries: Sendable {
  /// The maximum number of attempts, including the first.
  public var attemptsMax: Int
  /// The longest delay; if a service asks for more, the call fails.
  public let waitMax: Duration
  /// The function that waits for a delay; tests replace it.
  public var sleep: @Sendable (Duration) async throws -> Void
  /// The source of random numbers from 0 up to, but not including, 1.
  public var random: @Sendable () -> Double
  /// The current time, used to compute the delay until a date.
  public var now: @Sendable () -> Date

  /// The upper limit of `waitMax`, as in OpenAI's own clients.
  private static let waitLimit: Duration = .seconds(120)
  private static let backOff = BackOff(
    initial: .milliseconds(500),
    maximum: .seconds(8),
    jitter: 0.25
  )

  /// Creates a policy, by default with two retries and delays that fit into a function's time.
  ///
  /// A caller with more time may allow delays of up to two minutes; `waitMax` is cut to that.
  public init(
    attemptsMax: Int = 3,
    waitMax: Duration = .seconds(10),
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
    random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) },
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.attemptsMax = attemptsMax
    self.waitMax = min(waitMax, Self.waitLimit)
    self.sleep = sleep
    self.random = random
    self.now = now
  }

  /// Makes a call, and repeats it after failures that may pass.
  ///
  /// It ends when the call succeeds, cannot succeed, has been made `attemptsMax` times, or finds
  /// the circuit open.
  func run<Output>(
    through circuit: ServiceCircuit,
    _ call: () async throws -> Output
  ) async throws -> Output {
    var attempt = 1
    while true {
      do {
        return try await circuit.run(call)
      } catch let error as ServiceError {
        let wait =
          error.retryAfter ?? Self.backOff.delay(afterFailures: attempt, random: random())
        // Waiting does not add quota to an account, whatever else the service says.
        let mayPass = error.kind != .quotaExhausted && (error.shouldRetry ?? error.isTransient)
        guard mayPass, error.circuit == .closed, attempt < attemptsMax, wait <= waitMax,
          !Task.isCancelled
        else {
          // No caller needs to ask a service before the time that it named.
          let isNamed = error.isTransient && error.retryAfter != nil && error.circuit == .closed
          throw isNamed ? circuit.open(for: error) : error
        }
        try await sleep(wait)
        attempt += 1
      }
    }
  }
}
