import FirestoreClient
import FunctionsRuntime
import ServiceLifecycle
import UnixSignals

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A worker for the tests of the worker pool; each function does one thing right or wrong.
@main
struct SampleFunctionsMain {
  static func main() async throws {
    let environment = await FunctionsApp.environment()
    // `SAMPLE_START_MILLISECONDS` delays the start of the worker.
    if let wait = environment["SAMPLE_START_MILLISECONDS"].flatMap(Int.init) {
      try await Task.sleep(for: .milliseconds(wait))
    }
    // `SAMPLE_START_FILE` makes the worker trap at its start once the file is gone.
    if let path = environment["SAMPLE_START_FILE"], !FileManager.default.fileExists(atPath: path) {
      fatalError("trapped at the start as asked")
    }
    // `SAMPLE_ODD` makes the worker violate the protocol.
    if let fault = environment["SAMPLE_ODD"].flatMap(SampleOddWorker.Fault.init),
      let socket = environment["HEARTH_SOCKET"]
    {
      SampleOddWorker(fault: fault).serve(at: socket)
    }
    // `SAMPLE_INVALID` makes the deployment fail; `SAMPLE_VERSION` distinguishes binaries.
    let isInvalid = environment["SAMPLE_INVALID"] != nil
    let callables = SampleCallables(version: environment["SAMPLE_VERSION"] ?? "1")
    let streams = SampleStreams()
    let output = SampleOutput(path: environment["SAMPLE_OUTPUT"])
    let triggers = SampleTriggers(output: output)
    let tasks = SampleTasks(output: output)
    let chain = SampleChain(firestore: Firestore(environment: environment))
    // `SAMPLE_UNPREPARED` makes the preparation of `echo` fail or hang.
    let unprepared = environment["SAMPLE_UNPREPARED"]
    // `SAMPLE_CLOCKS` adds this many functions, and another one that crashes.
    let clocks = environment["SAMPLE_CLOCKS"].flatMap(Int.init) ?? 0
    let app = FunctionsApp {
      callables.echo.prepared {
        if unprepared == "fails" { throw SampleNeighbour.Failure() }
        if unprepared == "hangs" {
          Logger(label: "sample").info("Preparing")
          try await Task.sleep(for: .seconds(3600))
        }
      }
      callables.currentTime
      callables.whoAmI
      callables.adminOnly
      callables.failing
      callables.crash
      callables.hang
      callables.flood
      callables.log
      callables.slowEcho
      callables.gate
      callables.count
      callables.environment
      SampleFaults().all
      streams.spell
      streams.stall
      streams.numbers
      streams.whichApp
      streams.turnstile
      streams.inspect
      streams.echoBody
      streams.produce
      SampleEvents(output: output).functions
      triggers.recordWrite
      triggers.clockWrite("clockWrite", at: "clocked")
      triggers.clocks(clocks)
      triggers.failOnce
      triggers.crashOnce
      if clocks > 0 { triggers.crashOnTenth }
      triggers.crowds(environment["SAMPLE_CROWDS"].flatMap(Int.init) ?? 0)
      triggers.failAlways
      triggers.failForGood
      triggers.failWithoutRetry
      tasks.countTask
      tasks.failTask
      callables.hasty
      if environment["SAMPLE_EXTRA"] != nil { callables.extra }
      if environment["SAMPLE_USERS"] != nil { SampleUsers(output: output).functions }
      chain.hops
      chain.rewrite
      if isInvalid { callables.echo }
    }
    // `SAMPLE_NEIGHBOUR` runs the app beside a service, in the app's group or the program's own.
    switch environment["SAMPLE_NEIGHBOUR"] {
    case "beside": await app.runService(beside: [SampleNeighbour(fails: false)])
    case "fails": await app.runService(beside: [SampleNeighbour(fails: true)])
    case "own group":
      LoggingSystem.bootstrap { FunctionsApp.logHandler(label: $0) }
      let group = ServiceGroup(
        services: [SampleNeighbour(fails: false), app],
        gracefulShutdownSignals: [.sigterm],
        logger: Logger(label: "group")
      )
      try await group.run()
    default: await app.runService()
    }
  }
}
