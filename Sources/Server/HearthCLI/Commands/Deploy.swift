import ArgumentParser
import EmulatorSuite
import JSONText

/// `hearth deploy`: builds the functions and switches to the new version.
struct Deploy: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Build the functions and swap the new version in.",
    usage: "hearth deploy [--no-build] [--only <functions:NAME,…>] [<options>]",
    discussion: """
      Calls in flight finish on the old version; new ones start on the new. When the build, the \
      check of the functions or a worker's start fails, the old version keeps serving.

        hearth deploy               after an edit
        hearth deploy --no-build    after a build of your own
        hearth deploy --only functions:welcome,greeting

      With --only the functions named come from the new build and the others keep the version \
      they have. `hearth functions rollback` goes back. What waits for a function that the new \
      version lacks is kept for 24 hours and runs if the function is deployed again by then.
      """
  )

  @OptionGroup var suite: SuiteLocation

  @Flag(name: .customLong("no-build"), help: "Deploy the binary that was built last.")
  var skipsBuild = false

  @Option(
    help: ArgumentHelp(
      "Deploy these functions and leave the others.",
      valueName: "functions:NAME,…"
    )
  )
  var only: String?

  func validate() throws { _ = try functionsOnly }

  func run() async throws {
    let client = try await suite.connect()
    // The suite has read the settings at its start; mistakes in them since would go unseen.
    _ = try ProjectFiles.ofWorkingFolder()
    var outcome: DeployLine?
    var path = "/hearth/v1/deployments?build=\(!skipsBuild)"
    if let names = try functionsOnly {
      path += "&only=\(names.joined(separator: ",").percentEncoded)"
    }
    try await client.lines("POST", path) { line in
      let line = try DeployLine(decodingJSON: line.utf8)
      if line.kind == .progress { Terminal.note(line.text) } else { outcome = line }
    }
    switch outcome?.kind {
    case .deployed: Terminal.print(outcome?.text ?? "")
    case .failed: throw CommandError(outcome?.text ?? "The deployment failed.")
    case .progress, nil:
      throw CommandError("The suite went away during the deployment; look at its output.")
    }
  }

  /// The names in `--only`; nil for all functions.
  ///
  /// Accepts the forms of Firebase's tools, `functions` and `functions:a,functions:b`, and in
  /// addition `functions:a,b`.
  private var functionsOnly: [String]? {
    get throws {
      guard let only else { return nil }
      var names: [String] = []
      for part in only.split(separator: ",", omittingEmptySubsequences: false) {
        if part == "functions" { return nil }
        let name = part.hasPrefix("functions:") ? part.dropFirst("functions:".count) : part
        guard !name.isEmpty, part.hasPrefix("functions:") || !names.isEmpty else {
          throw ValidationError("--only is written functions:NAME or functions:NAME,NAME.")
        }
        names.append(String(name))
      }
      return names
    }
  }
}
