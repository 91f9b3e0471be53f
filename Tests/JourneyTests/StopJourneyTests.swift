import EmulatorSuite
import Foundation
import LibC
import OutboundHTTP
import TestSupport
import Testing

/// Stops of the suite while clients wait for responses or have disconnected.
@Suite("Journeys through stops", .serialized, .timeLimit(.minutes(5)))
struct StopJourneyTests {
  private static let decade = #"{"advanceSeconds": 315360000}"#

  /// Starts a control request and ignores its response; cancelling the task disconnects.
  private func begin(
    _ path: String,
    _ body: String,
    on suite: SuiteProcess
  ) -> Task<Void, any Error> {
    var request = OutboundRequest(
      method: "POST",
      url: "http://\(suite.address("hub"))\(path)",
      headers: ["authorization": "Bearer \(suite.token)", "content-type": "application/json"]
    )
    request.body = Array(body.utf8)
    request.timeout = nil
    return Task { [request] in _ = try await OutboundClient().send(request) }
  }

  @Test("A jump of ten years ends with its client, and a stop does not wait for one")
  func jumps() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project)
    let client = JourneyClient(suite)
    let left = begin("/hearth/v1/clock", Self.decade, on: suite)
    try await eventually("the jump begins") { try await client.clock().aheadSeconds > 0 }
    left.cancel()
    // When many reads in a row return the same time, no request advances the clock.
    var seen = 0.0
    var looks = 0
    while looks < 20 {
      _ = try await client.call("count", data: "null")
      let now = try await client.clock().aheadSeconds
      looks = now == seen ? looks + 1 : 0
      seen = now
    }
    #expect(seen < 315_360_000)

    let other = begin("/hearth/v1/clock", Self.decade, on: suite)
    let settling = begin("/hearth/v1/settle?timeoutSeconds=600", "", on: suite)
    try await eventually("the other jump begins") {
      try await client.clock().aheadSeconds != seen
    }
    #expect(await suite.stop() == 0, "\(project.logTail())")
    for task in [other, settling] { _ = await task.result }
    #expect(!project.logTail().contains("Delivery is dead"))
  }

  @Test("A later second signal ends the suite at once, by that signal, and its workers with it")
  func secondSignal() async throws {
    // On a machine that stalls, the suite may end by itself before the second signal.
    try await eventually("the second signal ends the suite", within: .seconds(120)) {
      try await isEndedBySecondSignal()
    }
  }

  private func isEndedBySecondSignal() async throws -> Bool {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project)
    let client = JourneyClient(suite)
    try await client.waitForDeployment()
    _ = try await client.call("count", data: "null")
    let workers = SuiteProcess.children(of: suite.pid)
    #expect(!workers.isEmpty)
    let hanging = Task { try await client.call("hang", data: #"{"isStubborn": true}"#) }
    try await eventually("hang runs") {
      try await client.deployedFunctions().contains { $0.name == "hang" && ($0.running ?? 0) > 0 }
    }

    kill(suite.pid, SIGTERM)
    // Signals count as one until the suite gives up their handlers, while "hang" still runs.
    await eventually("the suite gives up its handlers") { !catches(SIGINT, suite.pid) }
    kill(suite.pid, SIGINT)
    let signal = await suite.waitForSignal()
    _ = await hanging.result
    for worker in workers {
      await eventually("worker \(worker) ends") { kill(worker, 0) != 0 || isZombie(worker) }
    }
    return signal == SIGINT
  }

  /// Returns true if a process has a handler for a signal.
  private func catches(_ signal: CInt, _ process: pid_t) -> Bool {
    // A process that has ended has neither a status nor handlers.
    let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
    guard let line = status?.split(separator: "\n").first(where: { $0.hasPrefix("SigCgt:") }),
      let mask = UInt64(line.dropFirst(7).drop { $0.isWhitespace }, radix: 16)
    else { return false }
    return mask & 1 << UInt64(signal - 1) != 0
  }

  /// True if a process has ended and only waits to be reaped by its parent.
  private func isZombie(_ pid: pid_t) -> Bool {
    let text = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)
    return text?.contains(") Z ") ?? true
  }
}
