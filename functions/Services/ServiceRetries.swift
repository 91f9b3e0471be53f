import FirestoreClient

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// How often a call to a service is made again, and after which waits.
public struct ServiceRetries: Sendable {
  /// Attempts in all.
  public var attemptsMax: Int
  /// The longest wait; when a service asks for more, the call fails.
  public let waitMax: Duration
  /// Waits; a test hands in its own.
  public var sleep: @Sendable (Duration) async throws -> Void
  /// Gives a number from 0 up to 1.
  public var random: @Sendable () -> Double
  /// Tells the time, to measure a wait until a date.
  public var now: @Sendable () -> Date

  /// No call waits longer than OpenAI's own clients do.
  private static let waitLimit: Duration = .seconds(120)
  private static let backOff = BackOff(
    initial: .milliseconds(500),
    maximum: .seconds(8),
    jitter: 0.25
  )

  /// The usual two further attempts, after waits that fit into a function's time.
  ///
  /// A caller with more time may wait up to two minutes at a time; longer waits are cut to that.
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

  /// Makes a call until it succeeds, cannot succeed, has been made often enough, or finds the
  /// circuit open.
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
        // Waiting does not fill an account, whatever else the service says.
        let mayPass = error.kind != .quotaExhausted && (error.shouldRetry ?? error.isTransient)
        guard mayPass, error.circuit == .closed, attempt < attemptsMax, wait <= waitMax,
          !Task.isCancelled
        else {
          // Nobody needs to ask a service before the time that it named.
          let isNamed = error.isTransient && error.retryAfter != nil && error.circuit == .closed
          throw isNamed ? circuit.open(for: error) : error
        }
        try await sleep(wait)
        attempt += 1
      }
    }
  }
}
