import Foundation
import FunctionLogs
import HTTPMessages
import HTTPTypes
import Invocation
import Manifests
import Testing
import TestSupport

@testable import WorkerPool
import LibC

/// Handlers that harm their worker: each has a defined outcome and harms nothing else.
@Suite("Bad handlers", .timeLimit(.minutes(5)))
struct BadHandlerWorkerFleetTests {
  /// Disables Swift's crash reports, which take a second that no test here needs.
  private let quickly = ["SWIFT_BACKTRACE": "enable=no"]

  private func expectCrash(
    _ fleet: WorkerFleet,
    _ function: String,
    _ data: String,
    says words: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    let error = await #expect(throws: InvocationError.self, sourceLocation: sourceLocation) {
      try await fleet.call(function, #"{"data":\#(data)}"#)
    }
    #expect(error?.kind == .crashed, sourceLocation: sourceLocation)
    let message = error?.message ?? ""
    #expect(message.contains(words), "\(message)", sourceLocation: sourceLocation)
  }

  /// Returns once a function's log contains these words.
  private func line(_ words: String, of function: String, in log: FunctionLogStore) async {
    await eventually("\(function) logs \"\(words)\"") {
      await log.entries(function: function).contains { $0.message.contains(words) }
    }
  }

  /// Returns once a process has ended.
  private func end(of process: pid_t) async {
    // A zombie process still has its ID but no memory.
    await eventually("process \(process) ends") {
      kill(process, 0) != 0 || ProcessFacts.memoryBytes(of: process) ?? 0 == 0
    }
  }

  @Test("A trap or exit in mid-call fails that call and names how; the next has a new worker")
  func ends() async throws {
    let functions = try sample(["trap", "leave"], environment: quickly)
    try await withFleet(functions) { fleet, log in
      for kind in ["fatalError", "index", "unwrap", "overflow"] {
        await expectCrash(fleet, "trap", #"{"kind":"\#(kind)"}"#, says: "ended by signal")
      }
      await expectCrash(fleet, "trap", #"{"kind":"abort"}"#, says: "ended by signal 6")
      await expectCrash(fleet, "leave", #"{"status":0}"#, says: "it exited")
      await expectCrash(fleet, "leave", #"{"status":7}"#, says: "it exited with code 7")
      let lines = await log.entries().map(\.message)
      #expect(
        lines.contains { $0.contains("leave crashed while it ran test: it exited with code 7") }
      )
      // Optimized code traps without a text of the standard library, but not of `fatalError`.
      #expect(lines.contains { $0.contains("trapped as asked") })
    }
  }

  @Test(
    "A worker past its memory is ended and named, and so is one whose child is",
    arguments: [
      false, true,
    ]
  )
  func memory(inChild: Bool) async throws {
    let functions = try sample(["fillMemory", "echo"]) { $0.availableMemoryMb = 128 }
    try await withFleet(functions) { fleet, log in
      let within = try await fleet.call("fillMemory", #"{"data":{"mebibytes":20}}"#)
      #expect(within.number == 20)
      await expectCrash(
        fleet,
        "fillMemory",
        #"{"mebibytes":600,"inChild":\#(inChild)}"#,
        says: "of its 128 MiB memory"
      )
      #expect(try await fleet.call("echo").head.status == .ok)
      let named = await log.entries(function: "fillMemory").filter {
        $0.level == "error" && $0.message.contains("raise options.memory")
      }
      #expect(named.count == 1, "\(named)")
      #expect(named.first?.message.hasPrefix("fillMemory used ") == true)
    }
  }

  @Test("One call that asks for far more than its function may have traps instead of filling it")
  func guardedMemory() async throws {
    let functions = try sample(["fillMemory"], environment: quickly) { $0.availableMemoryMb = 128 }
    try await withFleet(functions) { fleet, _ in
      let error = await #expect(throws: InvocationError.self) {
        try await fleet.call("fillMemory", #"{"data":{"mebibytes":100000}}"#)
      }
      #expect(error?.kind == .crashed)
      #expect(fleet.statuses().flatMap(\.processes).allSatisfy { $0.memoryBytes < 128 << 20 })
    }
  }

  @Test(
    "Blocked threads, even all of them and burning, cost the deadline and then the worker",
    arguments: [false, true]
  )
  func blocks(all: Bool) async throws {
    let configuration = WorkerFleet.Configuration(cancelGrace: .milliseconds(100))
    try await withFleet(["block", "echo"], configuration) { fleet, log in
      // On a busy machine the worker may start more slowly than the first call's timeout.
      repeat {
        let error = await #expect(throws: InvocationError.self) {
          try await fleet.call(
            "block",
            #"{"data":{"all":\#(all),"spins":\#(all)}}"#,
            timeout: .milliseconds(800)
          )
        }
        #expect(error?.kind == .timedOut)
      } while await !log.entries(function: "block").contains { $0.message == "Begun" }
      await line("an invocation did not stop within", of: "block", in: log)
      let other = try await fleet.call("echo")
      #expect(other.head.status == .ok)
    }
  }

  @Test("What a worker has started ends with it, even what has left its session")
  func offspring() async throws {
    try await withFleet(["offspring", "echo"]) { fleet, log in
      var children: [pid_t] = []
      for leavesSession in [false, true] {
        let data = #"{"leavesSession":\#(leavesSession),"crashes":true}"#
        await expectCrash(fleet, "offspring", data, says: "it exited with code 3")
      }
      for entry in await log.entries(function: "offspring") {
        if entry.message.hasPrefix("offspring ") {
          children +=
            entry.message.split(separator: " ").last.flatMap { pid_t($0) }.map { [$0] } ?? []
        }
      }
      #expect(children.count == 2)
      for child in children { await end(of: child) }
      let reply = try await fleet.call("offspring", #"{"data":{"leavesSession":true}}"#)
      #expect(ProcessFacts.memoryBytes(of: pid_t(reply.number)) != nil)
    }
  }

  @Test("A flood without an end of line is cut, and a line says how much was dropped")
  func noise() async throws {
    try await withFleet(["noise"]) { fleet, log in
      let reply = try await fleet.call("noise", #"{"data":{"mebibytes":64}}"#)
      #expect(reply.number == 64)
      #expect(await log.entries(function: "noise").contains { $0.message.hasSuffix("… (cut)") })
      _ = fleet.statuses().flatMap(\.processes).map { kill($0.pid, SIGKILL) }
      await line("64 MiB more of that line were dropped", of: "noise", in: log)
    }
  }

  @Test("A worker without standard streams goes on, and a line says that what it writes is lost")
  func closesStreams() async throws {
    try await withFleet(["closeStreams"]) { fleet, log in
      let reply = try await fleet.call("closeStreams", #"{"data":{"descriptors":[0,1,2]}}"#)
      #expect(reply.number == 3)
      await line("has closed its standard output", of: "closeStreams", in: log)
      let again = try await fleet.call("closeStreams", #"{"data":{"descriptors":[]}}"#)
      #expect(again.number == 0)
      #expect(fleet.statuses().flatMap(\.processes).count == 1)
    }
  }

  @Test(
    "A worker that cannot be reached any more costs its calls their deadline, then is replaced",
    arguments: ["usurp", "leakDescriptors"]
  )
  func unreachable(function: String) async throws {
    let configuration = WorkerFleet.Configuration(cancelGrace: .milliseconds(100))
    try await withFleet(sample([function, "echo"]), configuration) { fleet, _ in
      let before = try await fleet.call(function).head.status
      #expect(before == .ok)
      let worker = fleet.statuses().flatMap(\.processes).map(\.pid)
      // The open connection still works; simultaneous calls need new connections.
      while !Task.isCancelled,
        fleet.statuses().flatMap(\.processes).map(\.pid).contains(where: worker.contains)
      {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<3 {
            group.addTask {
              do {
                _ = try await fleet.call(function, timeout: .milliseconds(300))
              } catch let error as InvocationError {
                #expect([.timedOut, .crashed, .failed].contains(error.kind), "\(error)")
              }
            }
          }
          try await group.waitForAll()
        }
      }
      #expect(try await fleet.call("echo").head.status == .ok)
    }
  }

  @Test("A worker that goes to another folder is still reached and still ends")
  func changesFolder() async throws {
    try await withFleet(["changeFolder"]) { fleet, _ in
      for _ in 0..<2 {
        let reply = try await fleet.call("changeFolder", #"{"data":"/"}"#)
        #expect(try await reply.text == #"{"result":"/"}"#)
      }
    }
  }

  @Test("Isolated calls that crash every worker they get cost the function's other calls nothing")
  func poison() async throws {
    let functions = try sample(["spell"], environment: quickly) { $0.maxInstances = 2 }
    try await withFleet(functions) { fleet, _ in
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          for _ in 0..<3 {
            var call = invocation("spell", #"{"data":{"text":"a","ending":"crash"}}"#)
            call.runsIsolated = true
            let error = await #expect(throws: InvocationError.self) {
              try await fleet.invoke(call)
            }
            #expect(error?.kind == .crashed)
            #expect(error?.isShared == false)
          }
        }
        for _ in 0..<3 {
          group.addTask {
            for _ in 0..<50 {
              let reply = try await fleet.call("spell", #"{"data":{"text":"abc"}}"#)
              #expect(reply.number == 3)
            }
          }
        }
        try await group.waitForAll()
      }
    }
  }

  @Test("Workers that trap at their start fail their own callers, and hold up no other function")
  func trapsAtStart() async throws {
    let path = "/tmp/hearth-start-\(UInt64.random(in: 0 ... .max))"
    #expect(FileManager.default.createFile(atPath: path, contents: nil))
    defer { unlink(path) }
    let environment = quickly.merging(["SAMPLE_START_FILE": path]) { $1 }
    let trapping = try sample(["slowEcho"], environment: environment) {
      $0.concurrency = 1
      $0.maxInstances = 50
    }
    try await withFleet(
      trapping + sample(["echo", "count"]),
      .init(workersMax: 3, placeTimeout: .seconds(120))
    ) {
      fleet,
      _ in
      unlink(path)
      await fleet.killWorkers()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<50 {
          group.addTask {
            let error = await #expect(throws: InvocationError.self) {
              try await fleet.call("slowEcho", #"{"data":{"milliseconds":0,"text":""}}"#)
            }
            #expect(error?.kind == .cannotStart)
          }
        }
        for name in ["echo", "count"] {
          group.addTask {
            let reply = try await fleet.call(name, timeout: .seconds(120))
            #expect(reply.head.status == .ok)
          }
        }
        try await group.waitForAll()
      }
    }
  }
}
