import InvocationContext
import OutboundHTTP
import Synchronization
import TestSupport
import Testing
@testable import FirestoreClient

/// Transactions on contended documents; time passes only while the client waits.
@Suite("Contention")
struct ContentionTests {
  /// A server and the client's clock.
  private final class SimulatedServer: HTTPTransport {
    private struct State {
      var now = ContinuousClock.Instant.now
      var calls: [String] = []
    }

    private let state = Mutex(State())
    private let answer: @Sendable (_ verb: String, _ count: Int) -> ScriptedHTTP.Answer
    let start: ContinuousClock.Instant

    /// Creates a server that responds by the verb and the number of its calls.
    init(_ answer: @escaping @Sendable (_ verb: String, _ count: Int) -> ScriptedHTTP.Answer) {
      self.answer = answer
      start = state.withLock { $0.now }
    }

    /// Creates a server that refuses every commit.
    static func busy(_ code: Int = 409, _ status: String = "ABORTED") -> SimulatedServer {
      SimulatedServer { verb, _ in
        switch verb {
        case "beginTransaction": ScriptedHTTP.json(#"{"transaction":"QQ=="}"#)
        case "commit": ScriptedHTTP.error(code, status)
        default: ScriptedHTTP.json("{}")
        }
      }
    }

    var elapsed: Duration { state.withLock { start.duration(to: $0.now) } }

    func count(_ verb: String) -> Int { state.withLock { $0.calls.count { $0 == verb } } }

    func send(_ request: OutboundRequest) async throws -> OutboundResponse {
      let verb = request.url.split(separator: ":").last.map(String.init) ?? ""
      let count = state.withLock { state in
        state.calls.append(verb)
        return state.calls.count { $0 == verb }
      }
      return try answer(verb, count).get()
    }

    func store(random: @escaping @Sendable () -> Double = { 0 }) -> Firestore {
      Firestore(
        project: "p",
        transport: RESTTransport(
          endpoint: "http://h",
          timeout: .seconds(1),
          responseBytesMax: 1000,
          http: self,
          tokens: nil
        ),
        retries: CallRetries(
          now: { self.state.withLock { $0.now } },
          sleep: { wait in self.state.withLock { $0.now += wait } },
          random: random
        )
      )
    }
  }

  @Test("A transaction runs again until its function's time is over, and then throws aborted")
  func deadline() async throws {
    let server = SimulatedServer.busy()
    let end = server.start + .seconds(20)
    let error = await InvocationDeadline.$current.withValue(end) {
      await #expect(throws: FirestoreError.self) {
        try await server.store().runTransaction { _ in }
      }
    }

    #expect(error?.code == .aborted)
    // 0.01, 0.02, …, 0.64 s, then 1 s for each attempt.
    #expect(server.elapsed == .milliseconds(19_270))
    #expect(server.count("commit") == 7 + 18 + 1)
    #expect(server.count("rollback") == server.count("commit"))
  }

  @Test("Outside of a function it runs again for a minute")
  func withoutDeadline() async throws {
    let server = SimulatedServer.busy()
    await #expect(throws: FirestoreError.self) { try await server.store().runTransaction { _ in } }
    #expect(server.elapsed == .milliseconds(59_270))

    let write = SimulatedServer.busy()
    let error = await #expect(throws: FirestoreError.self) {
      try await write.store().document("a/1").set(["x": 1])
    }
    #expect(error?.code == .aborted)
    #expect(write.elapsed == server.elapsed)
  }

  @Test("Chance takes any part off a wait, so that those who met once do not meet again")
  func jitter() async throws {
    let server = SimulatedServer.busy()
    await #expect(throws: FirestoreError.self) {
      try await server.store(random: { 0.75 }).runTransaction(attemptsMax: 3) { _ in }
    }
    #expect(server.elapsed == .milliseconds(10 + 20) / 4)
  }

  @Test("The runs that are asked for bound it, whatever the time")
  func attemptsMax() async throws {
    for count in [1, 12] {
      let server = SimulatedServer.busy()
      let runs = WaitLog()
      await #expect(throws: FirestoreError.self) {
        try await server.store().runTransaction(attemptsMax: count) { _ in runs.add(.zero) }
      }
      #expect(runs.all.count == count)
    }
  }

  @Test("A write outside transactions is made again; a transaction's commit never by itself")
  func writes() async throws {
    let server = SimulatedServer { _, count in
      count < 8
        ? ScriptedHTTP.error(409, "ABORTED")
        : ScriptedHTTP.json(#"{"writeResults":[{}],"commitTime":"2024-01-01T00:00:00Z"}"#)
    }
    try await server.store().document("a/1").set(["x": 1])
    #expect(server.count("commit") == 8)

    let transaction = SimulatedServer.busy()
    await #expect(throws: FirestoreError.self) {
      try await transaction.store().runTransaction(attemptsMax: 1) { _ in }
    }
    #expect(transaction.count("commit") == 1)
  }

  @Test("What a proxy answers is no contention: the server may have acted")
  func proxy() async throws {
    let server = SimulatedServer { _, _ in ScriptedHTTP.json("<html>", status: 409) }
    await #expect(throws: FirestoreError.self) {
      try await server.store().document("a/1").set(["x": 1])
    }
    #expect(server.count("commit") == 1)
  }

  @Test("Other failures end a transaction after five runs, contention between them or not")
  func otherFailures() async throws {
    let server = SimulatedServer { verb, count in
      switch verb {
      case "beginTransaction": ScriptedHTTP.json(#"{"transaction":"QQ=="}"#)
      case "commit" where count.isMultiple(of: 2): ScriptedHTTP.error(429, "RESOURCE_EXHAUSTED")
      case "commit": ScriptedHTTP.error(409, "ABORTED")
      default: ScriptedHTTP.json("{}")
      }
    }
    let error = await #expect(throws: FirestoreError.self) {
      try await server.store().runTransaction { _ in }
    }
    #expect(error?.code == .resourceExhausted)
    #expect(server.count("commit") == 10)
  }
}
