import Events
import Invocation
import RuntimeSupport
import Schedules
import Subprocess

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Asks a functions binary for its manifest, and refuses a manifest that cannot be served.
struct ManifestCheck: Sendable {
  /// Firebase's own limit for the discovery of functions.
  var timeout: Duration = .seconds(10)

  /// Runs the binary to write its manifest, and validates the manifest.
  ///
  /// Throws `DeploymentError` with the binary's own words when it crashes, refuses or hangs.
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
        timeout: timeout
      )
    } catch let error as SubprocessError {
      throw DeploymentError("The functions binary cannot be run: \(error)")
    }
    let words = result.tail.joined(separator: "\n")
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
    let manifest: FunctionManifest
    do {
      manifest = try JSONDecoder().decode(
        FunctionManifest.self,
        from: Data(contentsOf: URL(filePath: path))
      )
    } catch {
      throw DeploymentError("The functions binary wrote no valid manifest: \(error)")
    }
    try Self.validate(manifest)
    return manifest
  }

  /// Checks names, limits and triggers; the message names the function.
  static func validate(_ manifest: FunctionManifest) throws {
    guard manifest.specVersion == "v1alpha1" else {
      throw DeploymentError(
        "The manifest has version \(manifest.specVersion); this server reads v1alpha1. Build "
          + "functions and server from the same version."
      )
    }
    guard manifest.endpoints.count <= functionsMax else {
      throw DeploymentError("A deployment has at most \(functionsMax) functions.")
    }
    for (name, endpoint) in manifest.endpoints.sorted(by: { $0.key < $1.key }) {
      guard isName(name) else {
        throw DeploymentError(
          "\"\(name)\" is no name for a function: use a letter, then letters, digits, - and _, "
            + "63 in all."
        )
      }
      let triggers = [
        endpoint.callableTrigger != nil, endpoint.httpsTrigger != nil,
        endpoint.eventTrigger != nil, endpoint.scheduleTrigger != nil,
        endpoint.taskQueueTrigger != nil,
      ].count { $0 }
      guard triggers == 1 else {
        throw DeploymentError("Function \(name) has \(triggers) triggers; it needs exactly one.")
      }
      let problems = endpoint.problems
      guard problems.isEmpty else {
        throw DeploymentError(
          problems.map { "Function \(name) \($0)" }.joined(separator: "\n")
        )
      }
      if let trigger = endpoint.eventTrigger { try validate(trigger, of: name) }
      if let trigger = endpoint.scheduleTrigger { try validate(trigger, of: name) }
    }
  }

  private static func validate(
    _ trigger: FunctionEndpoint.EventTrigger,
    of name: String
  ) throws {
    // Other services' events have filters of their own; only documents have a pattern to check.
    guard DocumentEventType(name: trigger.eventType) != nil else { return }
    let filters = trigger.eventFilters.merging(trigger.eventFilterPathPatterns ?? [:]) { $1 }
    do {
      _ = try PathPattern(filters["document"] ?? "")
    } catch {
      throw DeploymentError("Function \(name): \(error.statusMessage)")
    }
  }

  private static func validate(
    _ trigger: FunctionEndpoint.ScheduleTrigger,
    of name: String
  ) throws {
    do {
      _ = try Schedule(trigger.schedule, timeZone: trigger.timeZone)
    } catch {
      throw DeploymentError("Function \(name): \(error.statusMessage)")
    }
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

  /// The most functions: each costs a worker at deployment, and more are surely a mistake.
  private static let functionsMax = 500
}
