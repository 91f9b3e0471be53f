import FirestoreClient
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The way to one provider, which closes to calls while the provider cannot serve anybody.
///
/// Failures that have nothing to do with what was asked open the circuit: three in a row, or a
/// single one that only a person can correct. While it is open, calls fail at once with the failure
/// that opened it. After the open time one call goes through as a probe: its success closes the
/// circuit, its failure opens it for longer, from 30 s up to 15 min. A longer time that the
/// provider names counts, and a shorter one only until the first probe.
///
/// Each worker has its own circuits, so that one needs no database in order to notice an outage. A
/// worker asks a dead provider about 100 times a day, which a few workers may do at once.
final class ServiceCircuit: Sendable {
  private let now: @Sendable () -> Date
  private let slots = CallSlots(callsMax)
  private let state = Mutex(State())

  /// The failures in a row that open the circuit; one call makes as many requests.
  private static let failuresMax = 3
  /// The calls under way at a time, and so the most that a provider's end can surprise.
  private static let callsMax = 16
  /// Each opening in a row is longer.
  private static let openTimes = BackOff(initial: .seconds(30), maximum: .seconds(900))
  /// The shortest time that a provider can name.
  private static let namedTimeMin: Duration = .seconds(1)
  /// The wait for the outcome of a probe.
  private static let probeTime: Duration = .seconds(5)

  private struct State {
    var failures = 0
    /// How often in a row the circuit opened; 0 while it is closed.
    var openings = 0
    var isProbed = false
    var opened = Date.distantPast
    var end = Date.distantPast
    /// Until when `check` lets nobody else prepare for the probe.
    var preparationEnd = Date.distantPast
    var cause: ServiceError?
  }

  /// A closed circuit by a clock.
  init(now: @escaping @Sendable () -> Date) {
    self.now = now
  }

  /// Makes a call, if the circuit lets it through.
  ///
  /// Calls beyond 16 at a time wait for their turn. Throws what `call` throws, or the failure that
  /// opened the circuit, with the time left as `retryAfter`.
  func run<Output>(_ call: () async throws -> Output) async throws -> Output {
    try await slots.take()
    defer { slots.giveBack() }
    let isProbe = try enter()
    do {
      let output = try await call()
      close()
      return output
    } catch let error as ServiceError {
      guard error.isOutage else {
        // Whoever refuses this request is there for others.
        close()
        throw error
      }
      throw failed(error, isProbe: isProbe)
    } catch {
      // A cancelled call says nothing about the provider.
      if isProbe { state.withLock { $0.isProbed = false } }
      throw error
    }
  }

  /// Throws as a call would while the circuit is open, before work that a call would follow.
  ///
  /// When a probe is due, one caller in a few seconds may prepare for it.
  func check() throws {
    try state.withLock { state in
      guard state.openings > 0 else { return }
      guard !state.isProbed, isOver(state, state.preparationEnd) else { throw held(state) }
      state.preparationEnd = now() + Self.probeTime / .seconds(1)
    }
  }

  /// Throws as a call would while the circuit is open; unlike `check` it prepares for no call.
  func peek() throws {
    try state.withLock { state in
      if state.openings > 0, state.isProbed || !isOver(state, state.end) { throw held(state) }
    }
  }

  /// Opens the circuit for a failure after which its caller gave up, at least for the time that the
  /// provider named.
  func open(for error: ServiceError) -> ServiceError {
    state.withLock { open(&$0, for: error) }
  }

  /// Whether the call that enters is the probe; throws while the circuit is open.
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
        // The call began before the circuit opened, for which it comes too late.
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

  /// Whether a time since the opening is over; a clock that was set back does not make it longer.
  private func isOver(_ state: State, _ end: Date) -> Bool {
    let now = now()
    return now >= end || now < state.opened
  }

  /// The failure that opened the circuit, with the time left until the next probe.
  private func held(_ state: State) -> ServiceError {
    var error = state.cause ?? ServiceError(.unavailable, "the provider is not asked now")
    let left = Duration.milliseconds(Int((state.end.timeIntervalSince(now()) * 1000).rounded(.up)))
    let isHalfOpen = state.isProbed || isOver(state, state.end)
    error.retryAfter = isHalfOpen ? Self.probeTime : left
    error.circuit = isHalfOpen ? .halfOpen : .open
    return error
  }
}
