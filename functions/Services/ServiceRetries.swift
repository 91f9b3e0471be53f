#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// How often and after which waits a call to a service is made again.
public struct ServiceRetries: Sendable {
  /// Attempts in all.
  public var attemptsMax: Int
  /// A service that wants to be left alone for longer gets its wish: the call fails.
  public let waitMax: Duration
  /// Waits; a test hands in its own.
  public var sleep: @Sendable (Duration) async throws -> Void
  /// Gives a number from 0 up to 1.
  public var random: @Sendable () -> Double
  /// Tells the time, which services that name a date are measured by.
  public var now: @Sendable () -> Date

  /// No call waits longer than OpenAI's own clients do.
  private static let waitLimit: Duration = .seconds(120)
  private static let backOffMax: Duration = .seconds(8)

  /// The usual two further attempts, after waits that fit into the time of a function.
  ///
  /// Whoever has more time may wait up to two minutes at a time; more than that is cut to it.
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

  /// Makes a call until it succeeds, cannot succeed, or has been made often enough.
  func run<Output>(_ call: () async throws -> Output) async throws -> Output {
    var attempt = 1
    while true {
      do {
        return try await call()
      } catch let error as ServiceError {
        let wait = error.retryAfter ?? wait(afterAttempt: attempt)
        // No wait fills an account, whatever else the service says.
        let mayPass = error.kind != .quotaExhausted && (error.shouldRetry ?? error.isTransient)
        guard mayPass, attempt < attemptsMax, wait <= waitMax, !Task.isCancelled else {
          throw error
        }
        try await sleep(wait)
        attempt += 1
      }
    }
  }

  /// Half a second, doubled each time up to eight, shortened by up to a quarter.
  private func wait(afterAttempt attempt: Int) -> Duration {
    min(.milliseconds(500) * (1 << min(attempt - 1, 4)), Self.backOffMax) * (1 - random() / 4)
  }
}
