import Foundation
import LibC
import Synchronization
import TestSupport
import Testing

/// Kills the suite and its workers at random moments and checks that nothing acknowledged is lost.
///
/// The moments cover a write from its request to its settled delivery. `HEARTH_TEST_SEED`
/// repeats a failed journey.
@Suite("Crash journeys", .serialized)
struct CrashJourneyTests {
  @Test(
    "No acknowledged write is lost and each event's function runs, whenever something is killed"
  )
  func crashes() async throws {
    for journey in RandomRounds(share: 8, atLeast: 3) {
      try await crash(journey: journey)
    }
  }

  private func crash(journey: Int) async throws {
    var generator = SeededGenerator.forTest("journey \(journey)")
    let project = try JourneyProject()
    var acknowledged: [String: Int] = [:]
    for life in 0..<2 {
      let suite = try await SuiteProcess(project)
      let client = JourneyClient(suite)
      let plan = Plan(using: &generator)
      let written = await write(client, suite: suite, life: life, plan: plan)
      acknowledged.merge(written) { $1 }
      await suite.killHard()
    }

    let suite = try await SuiteProcess(project)
    defer { suite.kill() }
    let client = JourneyClient(suite)
    do {
      try await client.settle()
    } catch {
      throw JourneyError("\(error)\n\(project.logTail())")
    }
    for (path, n) in acknowledged {
      #expect(try await client.read(path) == n, "\(path) after \(project.logTail())")
    }
    let recorded = Set(try project.records().compactMap { $0.count > 2 ? String($0[2]) : nil })
    let missing = acknowledged.keys.filter { !recorded.contains(String($0.dropFirst(7))) }
    #expect(missing.isEmpty, "no function ran for these: \(project.logTail())")
    #expect(try await client.events(state: "dead").isEmpty)
    #expect(try await client.events(state: "failed").isEmpty)
  }

  /// The times of the kills.
  private struct Plan {
    /// The number of acknowledged writes after which the suite is killed.
    var acknowledgementsMax: Int
    /// The number of acknowledged writes after which a worker is killed, if the suite still runs.
    var workerDiesAfter: Int
    /// The busy wait before the kill, which makes it fall between two steps of a write.
    var delayMicroseconds: Int

    init(using generator: inout SeededGenerator) {
      acknowledgementsMax = Int.random(in: 1...40, using: &generator)
      workerDiesAfter = Int.random(in: 1...60, using: &generator)
      delayMicroseconds = Int.random(in: 0...4000, using: &generator)
    }
  }

  /// Writes from four tasks until the plan kills the suite; returns the acknowledged writes.
  private func write(
    _ client: JourneyClient,
    suite: SuiteProcess,
    life: Int,
    plan: Plan
  ) async -> [String: Int] {
    let acknowledged = Acknowledgements()
    let pid = suite.pid
    await withTaskGroup(of: Void.self) { group in
      for writer in 0..<4 {
        group.addTask {
          for n in 0..<200 {
            let path = "things/l\(life)w\(writer)n\(n)"
            do {
              try await client.write(path, n: n)
            } catch {
              return  // The suite is dead: what follows cannot be acknowledged either.
            }
            let count = acknowledged.add(path, n)
            if count == plan.workerDiesAfter, let worker = SuiteProcess.children(of: pid).first {
              kill(worker, SIGKILL)
            }
            if count == plan.acknowledgementsMax {
              Self.spin(microseconds: plan.delayMicroseconds)
              kill(pid, SIGKILL)
            }
          }
        }
      }
    }
    return acknowledged.all
  }

  /// The acknowledged writes.
  private final class Acknowledgements: Sendable {
    private let written = Mutex<[String: Int]>([:])

    var all: [String: Int] { written.withLock { $0 } }

    /// Adds a document and returns the number of documents.
    func add(_ path: String, _ n: Int) -> Int {
      written.withLock {
        $0[path] = n
        return $0.count
      }
    }
  }

  private static func spin(microseconds: Int) {
    let end = ContinuousClock.now.advanced(by: .microseconds(microseconds))
    while ContinuousClock.now < end {}
  }
}
