import FirestoreClient
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A circuit breaker for calls to one provider.
///
/// The circuit opens on failures that do not depend on the request: after three in a row, or after
/// a single failure that only a person can correct. While it is open, calls fail at once with the
/// failure that opened it. After the open time one call goes through as a probe. If the probe
/// succeeds, the circuit closes. If it fails, the circuit stays open for longer, from 30 s up to 15
/// min. If the provider names a longer time, that time is used. A shorter time is used only until
/// the first probe.
///
/// Each worker has its own circuits, so that no database is needed to notice an outage. A worker
/// asks an unavailable provider about 100 times a day, which is acceptable for a few workers.
final class ServiceCircuit: Sendable {
  private let now: @Sendable () -> Date
  private let slots = CallSlots(callsMax)
  private let state = Mutex(State())

  /// The number of consecutive failures that open the circuit, equal to the attempts of a call.
  private static let failuresMax = 3
  /// The maximum number of concurrent calls, and thus of calls that an outage can interrupt.
  private static let callsMax = 16
  /// The open times, which increase with each consecutive opening.
  private static let openTimes = BackOff(initial: .seconds(30), maximum: .seconds(900))
  /// The minimum open time when the provider names a time.
  private static let namedTimeMin: Duration = .seconds(1)
  /// The delay for other callers while a probe is prepared or in progress.
  private static let probeTime: Duration = .seconds(5)

  private struct State {
    var failures = 0
    /// The number of consecutive openings; 0 while the circuit is closed.
    var openings = 0
    var isProbed = false
    var opened = Date.distantPast
    var end = Date.distantPast
    /// The time until which `check` lets no other caller prepare for the probe.
    var preparationEnd = Date.distantPast
    var cause: ServiceError?
  }

  /// Creates a closed circuit with the given clock.
  init(now: @escaping @Sendable () -> Date) {
    self.now = now
  }

  /// Makes a call, if the circuit allows it.
  ///
  /// Calls beyond 16 at a time wait in order. Throws any error of `call`, or the failure that
  /// opened the circuit, with the remaining time as `retryAfter`.
  func run<Output>(_ call: () async throws -> Output) async throws -> Output {
    try await slots.take()
    defer { slots.release() }
    let isProbe = try enter()
    do {
      let output = try await call()
      close()
      return output
    } catch let error as ServiceError {
      guard error.isOutage else {
        // A provider that refuses this request is available for others.
        close()
        throw error
      }
      throw failed(error, isProbe: isProbe)
    } catch {
      // A cancelled call gives no information about the provider.
      if isProbe { state.withLock { $0.isProbed = false } }
      throw error
    }
  }

  /// Throws the error of a call while the circuit is open, before work that precedes a call.
  ///
  /// When a probe is due, one caller per few seconds may prepare for it.
  func check() throws {
    try state.withLock { state in
      guard state.openings > 0 else { return }
      guard !state.isProbed, isOver(state, state.preparationEnd) else { throw held(state) }
      state.preparationEnd = now() + Self.probeTime / .seconds(1)
    }
  }

  /// Throws the error of a call while the circuit is open.
  ///
  /// Unlike `check`, this does not prepare for a call.
  func peek() throws {
    try state.withLock { state in
      if state.openings > 0, state.isProbed || !isOver(state, state.end) { throw held(state) }
    }
  }

  /// Opens the circuit for a failure after which its caller gave up.
  ///
  /// It stays open for at least the time that the provider named.
  func open(for error: ServiceError) -> ServiceError {
    state.withLock { open(&$0, for: error) }
  }

  /// Returns true if the call is the probe; throws while the circuit is open.
  private func enter() throws -> Bool {
    try state.withLock { state in
      guard state.openings > 0 else { return false }
      guard !state.isProbed, isOver(state, state.end) else { throw held(state) }
      state.isProbed = true
      return true
    }
  }

  private func close() {
    state.withLock { $0 = State() }
  }

  private func failed(_ error: ServiceError, isProbe: Bool) -> ServiceError {
    state.withLock { state in
      state.failures += 1
      if isProbe {
        state.isProbed = false
      } else if state.openings > 0 {
        // The call began before the circuit opened, so its failure no longer counts.
        return held(state)
      } else if state.failures < Self.failuresMax, !error.needsCorrection {
        return error
      }
      return open(&state, for: error)
    }
  }

  private func open(_ state: inout State, for failure: ServiceError) -> ServiceError {
    let isNews = state.cause?.kind != failure.kind
    let growing = Self.openTimes.delay(afterFailures: state.openings + 1)
    let named = failure.retryAfter.map { max($0, Self.namedTimeMin) }
    let wait = state.openings == 0 ? named ?? growing : max(growing, named ?? .zero)
    state.openings += 1
    state.opened = now()
    state.end = state.opened + wait / .seconds(1)
    state.preparationEnd = state.end
    state.cause = failure
    var error = held(state)
    error.isNews = isNews
    return error
  }

  /// Returns true if a time is over, also if the clock was set back since the opening.
  private func isOver(_ state: State, _ end: Date) -> Bool {
    let now = now()
    return now >= end || now < state.opened
  }

  /// Returns the failure that opened the circuit, with the time left until the next probe.
  private func held(_ state: State) -> ServiceError {
    var error = state.cause ?? ServiceError(.unavailable, "the provider is not asked now")
    let left = Duration.milliseconds(Int((state.end.timeIntervalSince(now()) * 1000).rounded(.up)))
    let isHalfOpen = state.isProbed || isOver(state, state.end)
    error.retryAfter = isHalfOpen ? Self.probeTime : left
    error.circuit = isHalfOpen ? .halfOpen : .open
    return error
  }
}
