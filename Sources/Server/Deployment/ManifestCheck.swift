import Events
import JSONText
package import Manifests
import Schedules
import StatusCodes
import Subprocess

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The check that asks a functions binary for its manifest and refuses unusable manifests.
package struct ManifestCheck: Sendable {
  /// The default time limit for the discovery of functions, equal to Firebase's.
  package static let timeoutDefault = Duration.seconds(10)

  var timeout = Self.timeoutDefault

  /// The maximum output of a binary that only has to write its manifest.
  private static let outputBytesMax = 1 << 20
  /// The maximum size of the output in an error, enough for problems of hundreds of functions.
  private static let wordsBytesMax = 64 << 10

  /// Runs the binary to write its manifest, and validates the manifest.
  ///
  /// Throws `DeploymentError` with the binary's own output if it crashes, refuses or hangs.
  func manifest(
    of binary: String,
    folder: String,
    environment: [String: String]
  ) async throws -> FunctionManifest {
    let path = folder + "/manifest.json"
    var environment = environment
    environment["FUNCTIONS_MANIFEST_OUTPUT_PATH"] = path
    let result: ChildProcess.Result
    do {
      result = try await ChildProcess.run(
        ChildProcess.program(binary),
        [],
        environment: environment,
        timeout: timeout,
        outputBytesMax: Self.outputBytesMax
      )
    } catch let error as SubprocessError {
      throw DeploymentError("The functions binary cannot be run: \(error)")
    }
    let words = result.words(bytesMax: Self.wordsBytesMax)
    if result.hasFlooded {
      throw DeploymentError(
        "The functions binary was ended, because it wrote over \(Self.outputBytesMax >> 20) MiB of "
          + "output while it was asked for its functions; its main must not print without end before "
          + "runService(). Its last words:\n\(words)"
      )
    }
    if result.timedOut {
      throw DeploymentError(
        "The functions binary did not describe its functions within \(timeout); its main must do "
          + "nothing slow before runService().\n\(words)"
      )
    }
    guard result.succeeded else {
      throw DeploymentError(
        words.isEmpty
          ? "The functions binary ended with \(result.status) instead of describing its functions."
          : "The functions binary refused to describe its functions:\n\(words)"
      )
    }
    guard FileManager.default.fileExists(atPath: path) else {
      throw DeploymentError(
        "This is not a functions binary: it ran and described no functions. Deploy the executable "
          + "whose main runs FunctionsApp { … }.runService(), with --executable or as "
          + "functions.product in firebase.json."
      )
    }
    let manifest: FunctionManifest
    do {
      manifest = try FunctionManifest(decodingJSON: Self.contents(of: path))
    } catch {
      throw DeploymentError("The functions binary wrote no valid manifest: \(error)")
    }
    try Self.validate(manifest)
    return manifest
  }

  /// Returns the contents of a manifest, if it is a regular file of acceptable size.
  private static func contents(of path: String) throws -> Data {
    let bytesMax = FunctionLimits.manifestBytesMax
    guard let bytes = DeploymentFolder.bytes(ofFile: path), bytes <= bytesMax else {
      throw DeploymentError("There is no file of at most \(bytesMax >> 20) MiB at \(path).")
    }
    return try Data(contentsOf: URL(filePath: path))
  }
}

// MARK: - Validation

extension ManifestCheck {
  /// Throws `DeploymentError` if the manifest has another version or an unusable function.
  static func validate(_ manifest: FunctionManifest) throws {
    guard manifest.specVersion == "v1alpha1" else {
      throw DeploymentError(
        "The manifest has version \(manifest.specVersion); this server reads v1alpha1. Build "
          + "functions and server from the same version."
      )
    }
    try validate(manifest.endpoints)
    try validateInstancesKept(manifest.endpoints)
  }

  /// Throws `DeploymentError` if `minInstances` would keep more workers than allowed.
  ///
  /// Each function is checked first, then the sum of all functions.
  private static func validateInstancesKept(_ functions: [String: FunctionEndpoint]) throws {
    let bound = FunctionLimits.instancesKeptMax
    let kept = functions.compactMap { name, endpoint in
      endpoint.minInstances.map { (name: name, count: $0) }
    }.filter { $0.count > 0 }.sorted { ($1.count, $0.name) < ($0.count, $1.name) }
    let rule =
      "of this server's \(FunctionLimits.workersMax) worker places, minInstances can keep "
      + "\(bound) in all."
    if let most = kept.first, most.count > bound {
      throw DeploymentError(
        "Function \(most.name) has a minInstances of \(most.count); \(rule) Lower it."
      )
    }
    let sum = kept.reduce(0) { $0 + $1.count }
    guard sum > bound else { return }
    let names = kept.prefix(namesMax).map { "\($0.name) \($0.count)" }.joined(separator: ", ")
    let more = kept.count > namesMax ? " and \(kept.count - namesMax) more" : ""
    throw DeploymentError(
      "The functions have a minInstances of \(sum) together (\(names)\(more)); \(rule) Lower some."
    )
  }

  /// The maximum number of functions that an error names.
  private static let namesMax = 10

  /// Validates the names, numbers, texts and triggers of functions from another program.
  ///
  /// Throws `DeploymentError` that names the first function that cannot be served.
  package static func validate(_ functions: [String: FunctionEndpoint]) throws {
    guard functions.count <= FunctionLimits.functionsMax else {
      throw DeploymentError(
        "There are \(functions.count) functions; a deployment has at most "
          + "\(FunctionLimits.functionsMax)."
      )
    }
    let blocking = Dictionary(
      grouping: functions.keys.sorted(),
      by: { functions[$0]?.blockingTrigger?.eventType ?? "" }
    )
    for (type, names) in blocking where !type.isEmpty && names.count > 1 {
      throw DeploymentError(
        "\(names.joined(separator: " and ")) are for the same event, \(type.suffix(100)); "
          + "Auth asks one function only."
      )
    }
    for (name, endpoint) in functions.sorted(by: { $0.key < $1.key }) {
      guard isName(name) else {
        throw DeploymentError(
          "\"\(name.prefix(100))\" is not a valid name for a function: use a letter, then "
            + "letters, digits, - and _, 63 in all."
        )
      }
      let problems = endpoint.problems
      guard problems.isEmpty else {
        throw DeploymentError(problems.map { "Function \(name) \($0)" }.joined(separator: "\n"))
      }
      do throws(StatusError) {
        if let trigger = endpoint.eventTrigger { try validate(trigger) }
        if let trigger = endpoint.scheduleTrigger {
          _ = try Schedule(trigger.schedule, timeZone: trigger.timeZone)
        }
      } catch {
        throw DeploymentError("Function \(name): \(error.statusMessage)")
      }
    }
  }

  private static func validate(_ trigger: FunctionEndpoint.EventTrigger) throws(StatusError) {
    let patterns = trigger.eventFilterPathPatterns ?? [:]
    if DatabaseEventType(name: trigger.eventType) != nil {
      _ = try DatabasePattern(filters: trigger.eventFilters.merging(patterns) { $1 })
      return
    }
    guard DocumentEventType(name: trigger.eventType) != nil else {
      for pattern in patterns.values { _ = try PathPattern(pattern, ofDocuments: false) }
      return
    }
    let filters = trigger.eventFilters.merging(patterns) { $1 }
    _ = try PathPattern(filters["document"] ?? "")
  }

  private static func isName(_ name: String) -> Bool {
    guard (1...63).contains(name.utf8.count), let first = name.utf8.first else { return false }
    func isLetter(_ byte: UInt8) -> Bool {
      (65...90).contains(byte) || (97...122).contains(byte)
    }
    return isLetter(first)
      && name.utf8.allSatisfy {
        isLetter($0) || (48...57).contains($0) || $0 == 45 || $0 == 95
      }
  }
}
