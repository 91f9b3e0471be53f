import FlowControl
import Foundation
import FunctionLogs
import HTTPMessages
import HTTPTypes
import Invocation
import Logging
import Manifests
import NIOCore
import StatusCodes
import Synchronization
import Testing
import TestSupport

@testable import WorkerPool

/// A fleet with real workers from the executable `SampleFunctions`.
@Suite("Worker fleet", .timeLimit(.minutes(5)))
struct WorkerFleetTests {
  @Test("A callable is answered by a worker that has started for it")
  func answers() async throws {
    try await withFleet(["echo"]) { fleet, _ in
      let reply = try await fleet.call("echo", #"{"data":{"a":[1,2]}}"#)

      #expect(reply.head.status == .ok)
      #expect(try await reply.text == #"{"result":{"a":[1,2]}}"#)
      #expect(fleet.statuses().map(\.workersReady) == [1])
    }
  }

  @Test("An unknown function is refused")
  func unknown() async throws {
    try await withFleet(["echo"]) { fleet, _ in
      await #expect(throws: InvocationError.self) { try await fleet.call("nope") }
    }
  }

  @Test("One worker runs many invocations at once, and its connections are used again")
  func concurrent() async throws {
    try await withFleet(["gate"]) { fleet, _ in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<20 {
          group.addTask { _ = try await fleet.call("gate", #"{"data":{"key":"k"}}"#) }
        }
        group.addTask {
          var opened = 0
          while opened < 20 {
            let reply = try await fleet.call("gate", #"{"data":{"key":"k","opens":true}}"#)
            opened += reply.number
            if fleet.statuses().allSatisfy({ $0.running == 0 }) { break }
          }
        }
        try await group.waitForAll()
      }
      #expect(fleet.statuses().map(\.workers) == [1])
    }
  }

  @Test("A crash fails its invocation with its id, and neither the next nor another function's")
  func crash() async throws {
    let quickly = ["SWIFT_BACKTRACE": "enable=no"]
    try await withFleet(sample(["crash", "echo"], environment: quickly)) { fleet, log in
      for id in ["invocation-1", "invocation-2"] {
        let error = await #expect(throws: InvocationError.self) {
          try await fleet.call("crash", id: id)
        }
        #expect(error?.kind == .crashed)
        #expect(error?.message.contains(id) == true)
        let other = try await fleet.call("echo")
        #expect(other.head.status == .ok)
      }
      let lines = await log.entries(function: "crash")
      #expect(lines.contains { $0.level == "critical" && $0.invocation == "invocation-2" })
      #expect(lines.contains { $0.message.contains("crashed as asked") })
    }
  }

  /// Calls `hang` with timeouts until the function's log has the awaited line.
  ///
  /// On a busy machine the worker may start more slowly than the first call's timeout.
  private func hang(
    _ fleet: WorkerFleet,
    _ data: String,
    id: String = "late",
    until log: FunctionLogStore,
    has isAwaited: (FunctionLogEntry) -> Bool
  ) async throws {
    repeat {
      try Task.checkCancellation()
      let error = await #expect(throws: InvocationError.self) {
        try await fleet.call("hang", data, id: id, timeout: .milliseconds(500))
      }
      #expect(error?.kind == .timedOut || error?.kind == .crashed)
    } while await !log.entries(function: "hang").contains(where: isAwaited)
  }

  @Test("An overdue invocation is cancelled in its worker, which is kept if the invocation stops")
  func timesOut() async throws {
    try await withFleet(["hang"], .init(cancelGrace: .seconds(600))) { fleet, log in
      try await hang(fleet, #"{"data":{}}"#, until: log) {
        $0.message == "Cancelled" && $0.invocation == "late"
      }

      #expect(fleet.statuses().map(\.workers) == [1])
      #expect(await !log.entries(function: "hang").contains { $0.message.contains("was ended") })
    }
  }

  @Test("A worker whose overdue invocation does not stop is ended and replaced")
  func hangs() async throws {
    try await withFleet(["hang"], .init(cancelGrace: .milliseconds(100))) { fleet, log in
      let stubborn = #"{"data":{"isStubborn":true}}"#
      try await hang(fleet, stubborn, until: log) { $0.message.contains("was ended") }

      try await hang(fleet, stubborn, id: "second", until: log) { $0.invocation == "second" }
    }
  }

  @Test("A caller that leaves has its invocation cancelled in the worker")
  func leaves() async throws {
    try await withFleet(["hang"], .init(cancelGrace: .seconds(600))) { fleet, log in
      var lines = log.stream(function: "hang").makeAsyncIterator()
      let call = Task { try await fleet.call("hang", #"{"data":{}}"#, id: "left") }
      #expect(await lines.next()?.message == "Begun")
      call.cancel()

      await #expect(throws: CancellationError.self) { try await call.value }
      let line = await lines.next()
      #expect(line?.message == "Cancelled", "\(String(describing: line))")
      #expect(line?.invocation == "left")
    }
  }

  @Test("A worker sees the variables that it is given, and nothing of the server's own")
  func environment() async throws {
    let functions = try sample(["environment"], environment: ["MINE": "1"])
    try await withFleet(functions, .init(environment: ["PATH": "/bin", "SECRET": "x"])) {
      fleet,
      _ in
      let reply = try await fleet.call("environment").text

      #expect(
        reply == #"{"result":["FIREBASE_DEBUG_FEATURES","FIREBASE_DEBUG_MODE","#
          + #""FUNCTIONS_EMULATOR","FUNCTION_MEMORY_MB","FUNCTION_SIGNATURE_TYPE","#
          + #""FUNCTION_TARGET","HEARTH_SOCKET","K_REVISION","K_SERVICE","MINE","PATH","#
          + #""SWIFT_BACKTRACE","TZ"]}"#
      )
    }
  }

  @Test("What a function logs is found by its invocation; what it prints is logged as it stands")
  func logs() async throws {
    try await withFleet(["log"]) { fleet, log in
      var lines = log.stream().makeAsyncIterator()
      _ = try await fleet.call("log", #"{"data":"hello"}"#, id: "mine")

      var entries: [FunctionLogEntry] = []
      while entries.count < 3, let line = await lines.next() { entries.append(line) }
      #expect(entries.map(\.message) == ["hello", "hello", "hello"])
      #expect(Set(entries.map(\.level)) == ["info", "warning"])
      #expect(entries.count { $0.invocation == "mine" } == 2)
      #expect(entries.contains { $0.metadata["from"] == "library" && $0.invocation == "mine" })
    }
  }

  @Test("A flood of output is cut, and holds up neither the function nor the server")
  func flood() async throws {
    try await withFleet(["flood"], .init(linesPerSecond: 10, linesBurst: 50)) { fleet, log in
      let reply = try await fleet.call("flood", #"{"data":{"lines":20000}}"#)

      #expect(reply.number == 20_000)
      #expect(await log.entries().count < 1_000)
    }
  }

  @Test("A new deployment takes over without failing a call; what runs finishes where it began")
  func replaces() async throws {
    let old = try sample(["slowEcho", "count"], environment: ["SAMPLE_VERSION": "old"])
    let new = try sample(["slowEcho", "count"], environment: ["SAMPLE_VERSION": "new"])
    try await withFleet(old) { fleet, _ in
      let begun = Task {
        try await fleet.call("slowEcho", #"{"data":{"milliseconds":2000,"text":"old"}}"#)
      }
      await fleet.waitForRunning()
      let versions = try await withThrowingTaskGroup(of: [String].self) { group in
        for _ in 0..<4 {
          group.addTask {
            var versions: [String] = []
            while versions.last != "new" || versions.count < 20 {
              let text = try await fleet.call("count").text
              versions.append(text.contains(#""version":"new""#) ? "new" : "old")
            }
            return versions
          }
        }
        try await fleet.replaceFunctions(new)
        return try await group.reduce(into: [[String]]()) { $0.append($1) }
      }

      for calls in versions {
        #expect(calls == calls.sorted(by: >), "No call after the switch is answered by the old")
      }
      #expect(try await begun.value.text == #"{"result":"old"}"#)
    }
  }

  @Test("A call that found the old version just before the change is run by the new one")
  func lateCall() async throws {
    try await withFleet(["echo"]) { fleet, _ in
      let old = try #require(fleet.state.withLock { $0.current["echo"] })
      try await fleet.replaceFunctions(sample(["echo"]))
      let submitted = WorkerInvocation(invocation("echo"))
      let reply = try await withCheckedThrowingContinuation { continuation in
        #expect(submitted.begin { continuation.resume(with: $0) })
        old.submit(submitted)
      }
      #expect(reply.head.status == .ok)
    }
  }

  @Test("A deployment whose worker does not start leaves the old one in place")
  func keepsOld() async throws {
    try await withFleet(["echo"]) { fleet, _ in
      let broken = try sample(["echo"], executable: "/bin/false")
      let error = await #expect(throws: StatusError.self) {
        try await fleet.replaceFunctions(broken)
      }

      #expect(error?.statusMessage.contains("echo did not start: it exited with code 1") == true)
      let missing = try sample(["echo"], executable: "/nowhere")
      await #expect(throws: StatusError.self) { try await fleet.replaceFunctions(missing) }
      let target = try sample(["nope"])
      let refused = await #expect(throws: StatusError.self) {
        try await fleet.replaceFunctions(target)
      }
      #expect(refused?.statusMessage.contains("no function has that name") == true)
      #expect(try await fleet.call("echo").head.status == .ok)
    }
  }

  @Test("The functions of an unserved deployment are known and do not run")
  func unserved() async throws {
    let fleet = WorkerFleet(log: FunctionLogStore(now: { Date() }), logger: .silent)
    fleet.unserved = UnservedDeployment(endpoints: nil, reason: "It is damaged.")
    let unknown = #expect(throws: InvocationError.self) { try fleet.knownEndpoints }
    #expect(unknown?.kind == .unserved && unknown?.message == "It is damaged.")
    fleet.unserved = UnservedDeployment(
      endpoints: ["echo": FunctionEndpoint(entryPoint: "echo")],
      reason: "It is starting."
    )
    #expect(try fleet.knownEndpoints.keys.sorted() == ["echo"])
    for name in ["echo", "other"] {
      let error = await #expect(throws: InvocationError.self) { try await fleet.call(name) }
      #expect(error?.kind == .unserved && error?.message == "It is starting.")
    }
    #expect(fleet.statuses().isEmpty)

    fleet.unserved = nil
    #expect(fleet.endpoints.isEmpty)
    let error = await #expect(throws: InvocationError.self) { try await fleet.call("echo") }
    #expect(error?.kind == .notFound)
  }

  @Test(
    "A first deployment that fails leaves no functions, unless the fleet stops or one is stored"
  )
  func firstDeployment() {
    func fleet(isFirst: Bool, stops: Bool) -> WorkerFleet {
      let fleet = WorkerFleet(log: FunctionLogStore(now: { Date() }), logger: .silent)
      fleet.unserved = UnservedDeployment(endpoints: nil, isFirst: isFirst, reason: "Starting.")
      if stops { fleet.stop(after: .zero) }
      fleet.giveUpFirstDeployment()
      return fleet
    }

    #expect(throws: Never.self) { try fleet(isFirst: true, stops: false).knownEndpoints }
    #expect(throws: InvocationError.self) { try fleet(isFirst: true, stops: true).knownEndpoints }
    #expect(throws: InvocationError.self) { try fleet(isFirst: false, stops: false).knownEndpoints }
  }

  @Test("A stop ends what still runs when its grace is over")
  func stopsHanging() async throws {
    let fleet = WorkerFleet(log: FunctionLogStore(now: { Date() }), logger: .silent)
    let running = Task { try await fleet.run() }
    try await fleet.replaceFunctions(sample(["hang"]))
    let hanging = Task { try await fleet.call("hang", #"{"data":{"isStubborn":true}}"#) }
    await fleet.waitForRunning()

    fleet.stop(after: .milliseconds(50))
    await #expect(throws: InvocationError.self) { try await hanging.value }
    try await running.value
  }

  @Test("A stop lets running invocations finish in their grace, and ends every process")
  func stops() async throws {
    let log = FunctionLogStore(now: { Date() })
    let fleet = WorkerFleet(log: log, logger: .silent)
    let running = Task { try await fleet.run() }
    try await fleet.replaceFunctions(sample(["hang", "slowEcho", "count"]))
    let process = try await fleet.call("count").text
    let slow = Task {
      try await fleet.call("slowEcho", #"{"data":{"milliseconds":500,"text":"done"}}"#)
    }
    await fleet.waitForRunning()

    fleet.stop(after: .seconds(240))
    let late = await #expect(throws: InvocationError.self) { try await fleet.call("count") }
    #expect(late?.kind == .drained)
    #expect(try fleet.knownEndpoints.keys.sorted() == ["count", "hang", "slowEcho"])
    #expect(try await slow.value.text == #"{"result":"done"}"#)
    try await running.value
    let pid = process.split(separator: ",").compactMap { field in
      field.contains("process") ? pid_t(field.filter(\.isNumber)) : nil
    }
    #expect(pid.count == 1)
    for pid in pid { #expect(kill(pid, 0) != 0) }
  }

  @Test("A handler has all its time, however long its worker took to start")
  func startsLate() async throws {
    let late = try sample(["hasty"], environment: ["SAMPLE_START_MILLISECONDS": "1200"]) {
      $0.timeoutSeconds = 1
      $0.taskQueueTrigger = .init()
    }
    try await withFleet(late) { fleet, _ in
      // On a machine that stalls, the handler itself may outrun its second.
      await eventually("a new worker's first call is answered in time") {
        await fleet.killWorkers()
        return (try? await fleet.call("hasty").head.status) == .ok
      }
    }
  }

  @Test("The error of a crash says whether the invocation was alone in its worker")
  func sharedCrash() async throws {
    try await withFleet(["slowEcho"]) { fleet, log in
      var lines = log.stream(function: "slowEcho").makeAsyncIterator()
      for count in 1...2 {
        let calls = (0..<count).map { _ in
          Task {
            try await fleet.call("slowEcho", #"{"data":{"milliseconds":600000,"text":""}}"#)
          }
        }
        var begun = 0
        while begun < count, let line = await lines.next() {
          begun += line.message == "Begun" ? 1 : 0
        }
        for process in fleet.statuses().flatMap(\.processes) { kill(process.pid, SIGKILL) }

        for call in calls {
          let error = await #expect(throws: InvocationError.self) { try await call.value }
          #expect(error?.kind == .crashed)
          #expect(error?.isShared == (count > 1))
        }
      }
    }
  }

  @Test("The error of an invocation beside a crash says so, however long the crash report takes")
  func slowCrash() async throws {
    let functions = try sample(["trap"]) { $0.timeoutSeconds = 1 }
    try await withFleet(functions) { fleet, log in
      // On a machine that stalls, the innocent call may end before the crash begins.
      await eventually("both calls end by a shared crash") {
        let lines = log.stream(function: "trap")
        let begun = Task { _ = await lines.first { $0.message == "Begun" } }
        let innocent = Task {
          defer { begun.cancel() }
          return try await fleet.call("trap", #"{"data":{"kind":"none"}}"#)
        }
        await begun.value
        // In a debug build, the crash report takes longer than the timeout of the innocent call.
        let guilty = Task { try await fleet.call("trap", #"{"data":{"kind":"index"}}"#) }
        var ends: [Bool] = []
        for call in [innocent, guilty] {
          let error = await #expect(throws: InvocationError.self) { try await call.value }
          ends.append(error?.kind == .crashed && error?.isShared == true)
        }
        return ends == [true, true]
      }
    }
  }

  @Test("An isolated request has a process of its own beside the function's others")
  func runsIsolated() async throws {
    let functions = try sample(["slowEcho"]) { $0.maxInstances = 1 }
    try await withFleet(functions) { fleet, _ in
      let others = Task {
        try await fleet.call("slowEcho", #"{"data":{"milliseconds":600000,"text":""}}"#)
      }
      await fleet.waitForRunning()

      var isolated = invocation("slowEcho", #"{"data":{"milliseconds":0,"text":"own"}}"#)
      isolated.runsIsolated = true
      let reply = try await fleet.invoke(isolated)
      #expect(try await reply.text == #"{"result":"own"}"#)
      await eventually("its process ends") { fleet.statuses().allSatisfy { $0.workers <= 1 } }
      #expect(fleet.statuses().map(\.running) == [1])
      others.cancel()
    }
  }
}
