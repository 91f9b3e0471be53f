import ArgumentParser
import EmulatorSuite
import Foundation

/// `hearth deploy`: builds the functions and swaps the new version in.
struct Deploy: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Build the functions and swap the new version in.",
    discussion: """
      Calls in flight finish on the old version; new ones start on the new. When the build, the \
      check of the functions or a worker's start fails, the old version keeps serving.

        hearth deploy               after an edit
        hearth deploy --no-build    after a build of your own
      """
  )

  @OptionGroup var suite: SuiteLocation

  @Flag(name: .customLong("no-build"), help: "Deploy the binary that was built last.")
  var skipsBuild = false

  func run() async throws {
    let client = try await suite.connect()
    var outcome: DeployLine?
    let path = "/hearth/v1/deployments" + (skipsBuild ? "?build=false" : "")
    try await client.lines("POST", path) { line in
      let line = try JSONDecoder().decode(DeployLine.self, from: Data(line.utf8))
      if line.kind == .progress { Terminal.note(line.text) } else { outcome = line }
    }
    switch outcome?.kind {
    case .deployed: Terminal.print(outcome?.text ?? "")
    case .failed: throw CommandFailure(outcome?.text ?? "The deployment failed.")
    case .progress, nil:
      throw CommandFailure("The suite went away during the deployment; look at its output.")
    }
  }
}
