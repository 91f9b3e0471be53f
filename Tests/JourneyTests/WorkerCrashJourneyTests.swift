import EmulatorSuite
import Foundation
import LibC
import Synchronization
import OutboundHTTP
import TestSupport
import Testing

/// Workers that are killed at random moments under load.
@Suite("Journeys through dying workers", .serialized, .timeLimit(.minutes(10)))
struct WorkerCrashJourneyTests {
  @Test("Nothing acknowledged is lost: each event is delivered or kept as dead, each call answered")
  func killed() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project)
    defer { suite.kill() }
    let client = JourneyClient(suite)
    try await client.waitForDeployment()
    let isDone = Flag()
    let written = Mutex(0)
    let pid = suite.pid

    let answers = try await withThrowingTaskGroup(of: [Int].self) { group in
      group.addTask { @Sendable in
        for number in RandomRounds(share: 3, atLeast: 100) {
          try await client.write("things/t\(number)", n: number)
          written.withLock { $0 = number + 1 }
        }
        isDone.set()
        return []
      }
      group.addTask {
        var answers: [Int] = []
        while !isDone.isSet {
          answers.append(try await client.call("count", data: "null").status)
        }
        return answers
      }
      group.addTask {
        while !isDone.isSet {
          if let worker = SuiteProcess.children(of: pid).randomElement() {
            kill(worker, SIGKILL)
          }
          _ = try await client.read("things/t0")
        }
        return []
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    try await client.settle()
    while try await !client.events(state: "pending").isEmpty { try await client.settle() }

    #expect(answers.allSatisfy { [200, 500, 503].contains($0) }, "\(Set(answers))")
    let recorded = Set(try project.records().map { String($0[2]) })
    let dead = Set(try await client.events(state: "dead").map { String($0.document.dropFirst(7)) })
    let count = written.withLock { $0 }
    let all = Set((0..<count).map { "t\($0)" })
    #expect(recorded.union(dead) == all, "lost \(all.subtracting(recorded.union(dead)))")
    for number in 0..<count {
      #expect(try await client.read("things/t\(number)") == number)
    }
    #expect(await suite.stop() == 0)
  }

  @Test("Events that share a worker with one that crashes are all delivered, and it alone is dead")
  func crowds() async throws {
    let project = try JourneyProject()
    try project.setEnvironment(["SAMPLE_CROWDS": "2"])
    let suite = try await SuiteProcess(project)
    defer { suite.kill() }
    let client = JourneyClient(suite)
    try await client.waitForDeployment()
    for number in 0..<2 { try await client.writeMany("crowd\(number)", count: 51) }
    try await client.settle()
    while try await !client.events(state: "pending").isEmpty { try await client.settle() }

    let done = try project.records().map { "\($0[0])/\($0[2])" }
    let written = (0..<2).flatMap { number in
      (0..<51).filter { $0 != 25 }.map { "crowd\(number)/\(1_000_000 + $0)" }
    }
    #expect(done.sorted() == written.sorted())
    let dead = try await client.events(state: "dead")
    #expect(dead.map(\.document).sorted() == ["crowd0/1000025", "crowd1/1000025"])
    #expect(await suite.stop() == 0)
  }

  /// A flag that several tasks read and that is set once.
  private final class Flag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
  }
}
