/// How often and after which waits a call to a service is made again.
public struct ServiceRetries: Sendable {
  /// Attempts in all.
  public var attemptsMax: Int
  /// A service that wants to be left alone for longer gets its wish: the call fails.
  public var waitMax: Duration
  /// Waits; a test hands in its own.
  public var sleep: @Sendable (Duration) async throws -> Void
  /// Gives a number from 0 up to 1.
  public var random: @Sendable () -> Double

  /// The usual two further attempts.
  public init(
    attemptsMax: Int = 3,
    waitMax: Duration = .seconds(10),
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
    random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
  ) {
    self.attemptsMax = attemptsMax
    self.waitMax = waitMax
    self.sleep = sleep
    self.random = random
  }

  /// Makes a call until it succeeds, cannot succeed, or has been made often enough.
  func run<Output>(_ call: () async throws -> Output) async throws -> Output {
    var attempt = 1
    while true {
      do {
        return try await call()
      } catch let error as ServiceError {
        let wait = error.retryAfter ?? wait(afterAttempt: attempt)
        guard error.isTransient, attempt < attemptsMax, wait <= waitMax, !Task.isCancelled else {
          throw error
        }
        try await sleep(wait)
        attempt += 1
      }
    }
  }

  /// Half a second, doubled each time, shortened by up to a quarter.
  private func wait(afterAttempt attempt: Int) -> Duration {
    .milliseconds(500) * (1 << min(attempt - 1, 4)) * (1 - random() / 4)
  }
}
