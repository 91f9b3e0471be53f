import ArgumentParser
import Deployment
import EmulatorSuite
import Foundation

/// The options that select the functions and their build, for `start` and `exec`.
struct FunctionsOptions: ParsableArguments {
  @Flag(name: .customLong("no-build"), help: "Deploy the binary that was built last.")
  var skipsBuild = false

  @Option(
    name: .customLong("configuration"),
    help: """
      How the functions are built: debug or release. (default: what firebase.json says in \
      functions.configuration, else release)
      """
  )
  var buildConfiguration: BuildConfiguration?

  @Option(
    help: ArgumentHelp(
      "Deploy this binary instead of building one.",
      valueName: "file"
    )
  )
  var executable: String?

  @Flag(
    name: .customLong("no-functions"),
    help: "Serve what was deployed before; `hearth deploy` brings new functions."
  )
  var skipsFunctions = false

  enum BuildConfiguration: String, ExpressibleByArgument, CaseIterable {
    case debug, release
  }

  func validate() throws {
    guard !skipsFunctions, let executable,
      !FileManager.default.isExecutableFile(atPath: absolutePath(executable))
    else { return }
    throw ValidationError("--executable is \(executable), which is not an executable file.")
  }

  /// Returns the functions to deploy; nil if no option and no `firebase.json` names any.
  func configuration(
    _ files: ProjectFiles,
    isWatched: Bool
  ) -> SuiteConfiguration.Functions? {
    if let executable {
      return .init(
        source: .executable(path: absolutePath(executable), folder: files.folder),
        builds: false,
        deploysAtStart: !skipsFunctions,
        isWatched: isWatched
      )
    }
    guard let source = files.functionsSource else { return nil }
    return .init(
      source: .package(
        path: source,
        product: files.functionsProduct,
        configuration: (buildConfiguration ?? files.functionsConfiguration ?? .release).rawValue
      ),
      builds: !skipsBuild,
      deploysAtStart: !skipsFunctions,
      isWatched: isWatched
    )
  }
}
