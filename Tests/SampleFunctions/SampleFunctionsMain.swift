import FirestoreClient
import FunctionsRuntime

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A worker for the tests of whoever runs workers: each function does one thing right or wrong.
@main
struct SampleFunctionsMain {
  static func main() async throws {
    let environment = await FunctionsApp.environment()
    // `SAMPLE_ODD` makes a worker that does not speak as one.
    if let fault = environment["SAMPLE_ODD"].flatMap(SampleOddWorker.Fault.init),
      let socket = environment["HEARTH_SOCKET"]
    {
      SampleOddWorker(fault: fault).serve(at: socket)
    }
    // `SAMPLE_INVALID` makes a binary that refuses to be deployed; `SAMPLE_VERSION` two that differ.
    let isInvalid = environment["SAMPLE_INVALID"] != nil
    let callables = SampleCallables(version: environment["SAMPLE_VERSION"] ?? "1")
    let streams = SampleStreams()
    let output = SampleOutput(path: environment["SAMPLE_OUTPUT"])
    let triggers = SampleTriggers(output: output)
    let tasks = SampleTasks(output: output)
    let chain = SampleChain(firestore: Firestore(environment: environment))
    let app = FunctionsApp {
      callables.echo
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
      triggers.clockWrite
      triggers.failOnce
      triggers.crashOnce
      triggers.failAlways
      triggers.failForGood
      triggers.failWithoutRetry
      tasks.countTask
      tasks.failTask
      callables.hasty
      if environment["SAMPLE_EXTRA"] != nil { callables.extra }
      chain.hops
      chain.rewrite
      if isInvalid { callables.echo }
    }
    await app.runService()
  }
}
