import Foundation
@testable import PsstBackend
import Synchronization
import Testing

/// A circuit with a clock that a test controls, and statistics of its calls.
private final class CircuitFixture: Sendable {
  private struct State {
    var time = Date(timeIntervalSince1970: 1_000_000)
    var calls = 0
    var running = 0
    var runningMax = 0
  }

  private let state: Shared<State>
  let circuit: ServiceCircuit

  init() {
    let state = Shared(State())
    self.state = state
    circuit = ServiceCircuit(now: { state.value.withLock { $0.time } })
  }

  var calls: Int { state.value.withLock { $0.calls } }
  /// The maximum number of simultaneous calls.
  var runningMax: Int { state.value.withLock { $0.runningMax } }

  func pass(_ seconds: Double) { state.value.withLock { $0.time += seconds } }

  /// Makes a call that ends with `error`; returns the error that the caller gets.
  @discardableResult
  func call(
    _ error: ServiceError? = nil,
    during act: @Sendable () async throws -> Void = {}
  ) async throws -> ServiceError? {
    do {
      try await circuit.run {
        state.value.withLock {
          $0.calls += 1
          $0.running += 1
          $0.runningMax = max($0.running, $0.runningMax)
        }
        defer { state.value.withLock { $0.running -= 1 } }
        try await act()
        if let error { throw error }
      }
      return nil
    } catch let error as ServiceError {
      return error
    }
  }

  /// Opens the circuit by three failures.
  func goDown() async throws { for _ in 0..<3 { try await call(down) } }
}

/// State behind a lock that several objects share.
private final class Shared<State: Sendable>: Sendable {
  let value: Mutex<State>
  init(_ state: State) { value = Mutex(state) }
}

private let down = ServiceError(.unavailable, "it is down")

@Suite("Circuit of a provider")
struct ServiceCircuitTests {
  private let fixture = CircuitFixture()

  @Test("Three failures in a row open it, and then calls fail without being made")
  func opens() async throws {
    #expect(try await fixture.call(down)?.circuit == .closed)
    #expect(try await fixture.call(down)?.circuit == .closed)
    let third = try await fixture.call(down)
    #expect(third?.circuit == .open && third?.isNews == true)
    fixture.pass(10)
    let held = try await fixture.call()

    #expect(held?.kind == .unavailable)
    #expect(held?.message == "it is down")
    #expect(held?.retryAfter == .seconds(20))
    #expect(held?.circuit == .open && held?.isNews == false)
    #expect(fixture.calls == 3)
    #expect(throws: ServiceError.self) { try fixture.circuit.check() }
  }

  @Test("Each failed probe opens it for longer, up to a quarter of an hour, and is no news")
  func grows() async throws {
    try await fixture.goDown()
    var waits: [Double] = []
    for _ in 0..<7 {
      let wait = try #require(try await fixture.call()?.retryAfter) / .seconds(1)
      waits.append(wait)
      fixture.pass(wait - 0.001)
      #expect(try await fixture.call()?.circuit == .open)
      fixture.pass(0.001)
      #expect(try await fixture.call(down)?.isNews == false)
    }

    #expect(waits == [30, 60, 120, 240, 480, 900, 900])
    #expect(fixture.calls == 3 + 7)
  }

  @Test("A successful probe closes it, and the next outage begins afresh")
  func closes() async throws {
    try await fixture.goDown()
    fixture.pass(30)
    #expect(try await fixture.call(down)?.retryAfter == .seconds(60))
    fixture.pass(60)
    try fixture.circuit.check()
    #expect(try await fixture.call() == nil)
    #expect(try await fixture.call() == nil)
    #expect(try await fixture.call(down)?.circuit == .closed)
    try await fixture.call(down)
    let opener = try await fixture.call(down)

    #expect(opener?.retryAfter == .seconds(30))
    #expect(opener?.isNews == true)
  }

  @Test("Only one call is the probe; the others fail while it is under way")
  func oneProbe() async throws {
    try await fixture.goDown()
    fixture.pass(30)
    let fixture = fixture
    try await fixture.call(during: {
      for _ in 0..<50 {
        let held = try await fixture.call()
        #expect(held?.retryAfter == .seconds(5) && held?.circuit == .halfOpen)
      }
      #expect(throws: ServiceError.self) { try fixture.circuit.check() }
    })

    #expect(fixture.calls == 4)
    #expect(try await fixture.call() == nil)
  }

  @Test("A probe that is cancelled leaves its place to another one")
  func cancelledProbe() async throws {
    try await fixture.goDown()
    fixture.pass(30)
    await #expect(throws: CancellationError.self) {
      try await fixture.call(during: { throw CancellationError() })
    }

    #expect(try await fixture.call() == nil)
  }

  @Test("A success in between, or an answer to the request itself, starts the count again")
  func countsInARow() async throws {
    for error in [nil, ServiceError(.refused, "not this"), ServiceError(.notFound, "not there")] {
      for _ in 0..<2 { #expect(try await fixture.call(down)?.circuit == .closed) }
      try await fixture.call(error)
    }
    try await fixture.call(down)

    #expect(try await fixture.call() == nil)
    #expect(fixture.calls == 11)
  }

  @Test(
    "What only a person can correct opens it at once",
    arguments: [ServiceError.Kind.misconfigured, .quotaExhausted]
  )
  func correction(kind: ServiceError.Kind) async throws {
    #expect(try await fixture.call(ServiceError(kind, "no"))?.isNews == true)
    #expect(try await fixture.call()?.kind == kind)
    #expect(fixture.calls == 1)
    fixture.pass(30)
    #expect(try await fixture.call(down)?.isNews == true)
  }

  @Test(
    "The time that a provider names counts, but a short one only until the first probe",
    arguments: [(0.0, [1, 60, 120]), (7, [7, 60, 120]), (100, [100, 100, 120])]
      as [(Double, [Double])]
  )
  func named(seconds: Double, waits: [Double]) async throws {
    let error = ServiceError(.rateLimited, "later", retryAfter: .seconds(seconds))
    var opener = fixture.circuit.open(for: error)
    for wait in waits {
      #expect(opener.retryAfter == .seconds(wait))
      fixture.pass(wait)
      opener = try #require(try await fixture.call(error))
    }
  }

  @Test("Of many calls at once few surprise the provider, and the others are not made")
  func burst() async throws {
    let fixture = fixture
    try await withThrowingTaskGroup(of: ServiceError?.self) { group in
      for _ in 0..<200 {
        // Yields so that others begin while a call is in progress.
        group.addTask { try await fixture.call(down, during: { await Task.yield() }) }
      }
      for try await error in group { #expect(error?.kind == .unavailable) }
    }

    #expect(fixture.runningMax <= 16)
    // The calls that were in progress when the third one failed.
    #expect(fixture.calls <= 2 + 16)
  }

  @Test("When a probe is due, one caller prepares for it, and the next one a few seconds later")
  func preparation() async throws {
    try await fixture.goDown()
    fixture.pass(30)
    try fixture.circuit.check()
    let refused = #expect(throws: ServiceError.self) { try fixture.circuit.check() }
    #expect(refused?.circuit == .halfOpen && refused?.retryAfter == .seconds(5))
    fixture.pass(5)
    try fixture.circuit.check()
    #expect(try await fixture.call() == nil)
    for _ in 0..<5 { try fixture.circuit.check() }
  }

  @Test("A clock that is set back does not keep it open")
  func clockSetBack() async throws {
    try await fixture.goDown()
    fixture.pass(30)
    try fixture.circuit.check()
    fixture.pass(-86_400)

    try fixture.circuit.check()
    #expect(try await fixture.call() == nil)
  }
}

@Suite("Slots of calls")
struct CallSlotsTests {
  @Test("A caller that is cancelled while it waits goes, and the next one has its turn")
  func cancelled() async throws {
    let slots = CallSlots(1)
    try await slots.take()
    let first = Task { try await slots.take() }
    let second = Task {
      try await slots.take()
      slots.release()
    }
    first.cancel()

    await #expect(throws: CancellationError.self) { try await first.value }
    slots.release()
    try await second.value
    try await slots.take()
  }
}
