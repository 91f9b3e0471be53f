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
    let environment = ProcessInfo.processInfo.environment
    // `SAMPLE_INVALID` makes a binary that refuses to be deployed; `SAMPLE_VERSION` two that differ.
    let isInvalid = environment["SAMPLE_INVALID"] != nil
    let callables = SampleCallables(version: environment["SAMPLE_VERSION"] ?? "1")
    let triggers = SampleTriggers(output: SampleOutput(path: environment["SAMPLE_OUTPUT"]))
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
      triggers.recordWrite
      triggers.clockWrite
      triggers.failOnce
      triggers.crashOnce
      triggers.failAlways
      triggers.failForGood
      triggers.failWithoutRetry
      if isInvalid { callables.echo }
    }
    try await app.run()
  }
}
