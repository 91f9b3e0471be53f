package import FlowControl
package import OutboundHTTP
import StatusCodes
import Synchronization

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// The access token for one source of credentials, cached and renewed.
///
/// If several callers wait, one of them fetches and the others share its result. A token is renewed
/// some minutes before it expires; if that fails, the old token is used until it expires. A fetch
/// that fails for a temporary reason is retried with growing delays, within the limits of
/// `Configuration`.
package final class GoogleCredentials: AccessTokenSource {
  /// The limits of fetching.
  package struct Configuration: Sendable {
    /// The maximum number of requests for one token, including the first.
    package var attemptsMax: Int
    /// The delays between requests.
    package var backOff: BackOff
    /// The time limit of one request.
    package var timeout: Duration
    /// The seconds before expiry at which a token is renewed; Google's libraries use 3 min 45 s.
    package var renewalSeconds: Double

    /// Creates limits; each has a default.
    package init(
      attemptsMax: Int = 4,
      backOff: BackOff = BackOff(initial: .milliseconds(200), maximum: .seconds(5)),
      timeout: Duration = .seconds(10),
      renewalSeconds: Double = 225
    ) {
      self.attemptsMax = attemptsMax
      self.backOff = backOff
      self.timeout = timeout
      self.renewalSeconds = renewalSeconds
    }
  }

  private let exchange: TokenExchange
  private let configuration: Configuration
  private let now: @Sendable () -> Date
  private let sleep: @Sendable (Duration) async throws -> Void
  private let shared = Mutex(Shared())

  private struct Shared {
    var held: FetchedToken?
    /// The time until which a failed renewal is not retried while the old token is valid.
    var renewsFrom = Date.distantPast
    var isFetching = false
    var email: String?
    var waiters: [UInt64: CheckedContinuation<Void, any Error>] = [:]
    var lastWaiter: UInt64 = 0
  }

  private enum Step {
    case take(String)
    case fetch
    case wait(UInt64)
  }

  /// Creates credentials that fetch the first token on demand.
  package init(
    source: CredentialsSource,
    http: any HTTPTransport,
    configuration: Configuration = Configuration(),
    now: @escaping @Sendable () -> Date = { Date() },
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    exchange = TokenExchange(source: source, http: http, timeout: configuration.timeout)
    self.configuration = configuration
    self.now = now
    self.sleep = sleep
  }

  package func token() async throws -> String {
    while true {
      switch nextStep() {
      case .take(let token): return token
      case .fetch: return try await fetch()
      case .wait(let id): try await wait(as: id)
      }
    }
  }

  package func reject(_ token: String) {
    shared.withLock { if $0.held?.token == token { $0.held = nil } }
  }

  package func serviceAccountEmail() async throws -> String {
    if let email = shared.withLock({ $0.email }) { return email }
    let email = try await patiently { try await exchange.serviceAccountEmail() }
    shared.withLock { $0.email = email }
    return email
  }

  private func nextStep() -> Step {
    let time = now()
    return shared.withLock { shared in
      if let held = shared.held, held.isValid(at: time) {
        let isFresh = held.isValid(at: time.addingTimeInterval(configuration.renewalSeconds))
        if isFresh || shared.isFetching || time < shared.renewsFrom { return .take(held.token) }
      }
      guard shared.isFetching else {
        shared.isFetching = true
        return .fetch
      }
      shared.lastWaiter += 1
      return .wait(shared.lastWaiter)
    }
  }

  /// Waits until the fetch in progress has ended; rethrows its error.
  private func wait(as id: UInt64) async throws {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (waiter: CheckedContinuation<Void, any Error>) in
        let isFetching = shared.withLock { shared in
          guard shared.isFetching, !Task.isCancelled else { return false }
          shared.waiters[id] = waiter
          return true
        }
        // The fetch has ended in the meantime, so the caller checks again.
        if !isFetching { waiter.resume() }
      }
    } onCancel: {
      shared.withLock { $0.waiters.removeValue(forKey: id) }?.resume(throwing: CancellationError())
    }
    try Task.checkCancellation()
  }

  private func fetch() async throws -> String {
    do {
      let token = try await patiently { try await exchange.fetch(at: now()) }
      finish(.success(()), held: token)
      return token.token
    } catch {
      // If the fetching caller is cancelled, the waiting callers check again and one of them
      // fetches.
      let isGivenUp = Task.isCancelled
      let valid = finish(isGivenUp ? .success(()) : .failure(error), held: nil)
      guard !isGivenUp, let valid else { throw error }
      return valid.token
    }
  }

  /// Resumes the waiting callers and returns the present token if it is still valid.
  @discardableResult
  private func finish(_ result: Result<Void, any Error>, held: FetchedToken?) -> FetchedToken? {
    let time = now()
    let (waiters, valid) = shared.withLock { shared in
      shared.isFetching = false
      if let held {
        shared.held = held
      } else {
        shared.renewsFrom = time.addingTimeInterval(Self.renewalPauseSeconds)
      }
      defer { shared.waiters = [:] }
      return (shared.waiters, shared.held.flatMap { $0.isValid(at: time) ? $0 : nil })
    }
    for waiter in waiters.values { waiter.resume(with: result) }
    return valid
  }

  /// Repeats a request while its failure may be temporary.
  private func patiently<Answer>(_ ask: () async throws -> Answer) async throws -> Answer {
    var failures = 0
    while true {
      do {
        return try await ask()
      } catch let error as TokenError {
        failures += 1
        guard error.mayPass, failures < configuration.attemptsMax, !Task.isCancelled else {
          throw error.error
        }
        try await sleep(configuration.backOff.delay(afterFailures: failures))
      }
    }
  }

  private static let renewalPauseSeconds = 10.0
}

/// A token and its expiration time.
struct FetchedToken: Sendable, CustomStringConvertible, CustomReflectable {
  var token: String
  var end: Date

  func isValid(at time: Date) -> Bool { time < end }

  var description: String { "a token until \(end)" }
  var customMirror: Mirror { Mirror(self, children: ["end": end]) }
}

/// A failure to get a token; `mayPass` is true if a retry may succeed.
struct TokenError: Error {
  var error: StatusError
  var mayPass: Bool
}
