import ArgumentParser
import EmulatorSuite
import Foundation

/// `hearth doctor`: checks what the suite needs and explains how to fix problems.
struct Doctor: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check toolchain, settings, ports, deployment and events, and say how to fix each.",
    discussion: """
      Each setting is shown with where it comes from; secrets only as set or not. While a suite \
      runs, its deployment, triggers and events are looked at, otherwise the ports it would take. \
      Exit code 0 when all is well, 1 when something needs fixing; a note needs nothing.

        hearth doctor
      """
  )

  @OptionGroup var suite: SuiteLocation

  func run() async throws {
    let files = try ProjectFiles(folder: FileManager.default.currentDirectoryPath)
    var findings = await Machine.toolchain()
    findings += settings(files)
    findings.append(Machine.dataFolder(suite.dataFolder ?? SuiteLocation.defaultFolder))
    let running: ControlClient?
    do {
      running = try await suite.connect()
    } catch let failure as CommandError where failure.code == .noServer {
      // Without a suite, only the checks of the suite are skipped.
      running = nil
    }
    if let running {
      findings += try await health(of: running, files)
    } else {
      findings.append(
        Finding("suite", .note, "none is running; `hearth start` starts one")
      )
      findings += Machine.ports()
    }
    Terminal.print(
      Terminal.table(
        ["CHECK", "STATE", "DETAIL"],
        findings.map { [$0.check, $0.state.rawValue, $0.detail] }
      )
    )
    let broken = findings.count { $0.state == .fix }
    guard broken == 0 else {
      throw CommandError("\(broken) problem\(broken == 1 ? "" : "s").")
    }
  }

  /// A line of the report.
  struct Finding {
    var check: String
    var state: State
    var detail: String

    enum State: String {
      case ok
      /// Nothing is wrong, but the user may have intended something else.
      case note
      case fix = "FIX"
    }

    init(_ check: String, _ state: State, _ detail: String) {
      self.check = check
      self.state = state
      self.detail = detail
    }

    init(_ check: String, isWell: Bool, _ detail: String) {
      self.init(check, isWell ? .ok : .fix, detail)
    }
  }

  /// Returns the settings of commands in this folder, with their sources.
  private func settings(_ files: ProjectFiles) -> [Finding] {
    var findings = [functions(files)]
    findings += [("firestore", files.firestoreRules), ("storage", files.storageRules)]
      .compactMap { service, path in path.map { rules($0, of: service) } }
    let project =
      suite.project.map { "\($0) (--project)" }
      ?? files.defaultProject.map { "\($0) (.firebaserc)" }
      ?? "demo-psst (default; no .firebaserc)"
    findings.append(Finding("project", .ok, project))
    let environment = ProcessInfo.processInfo.environment
    for name in ["FIREBASE_EMULATOR_HUB", "FIRESTORE_EMULATOR_HOST", "GCLOUD_PROJECT"] {
      if let value = environment[name] {
        findings.append(Finding(name, .ok, "\(value) (environment)"))
      }
    }
    return findings
  }

  private func rules(_ path: String, of service: String) -> Finding {
    let exists = FileManager.default.fileExists(atPath: path)
    return Finding(
      "\(service) rules",
      isWell: exists,
      exists
        ? path
        : "\(path) is missing; write it, or correct \(service).rules in firebase.json"
    )
  }

  private func functions(_ files: ProjectFiles) -> Finding {
    guard let source = files.functionsSource else {
      return Finding(
        "functions",
        .note,
        "no functions in a firebase.json of this folder; run doctor in your project's folder, "
          + "or write a package with `hearth init DIR`"
      )
    }
    let manifest = source + "/Package.swift"
    let product = files.functionsProduct.map { ", product \($0)" } ?? ""
    let exists = FileManager.default.fileExists(atPath: manifest)
    return Finding(
      "functions",
      isWell: exists,
      exists
        ? "\(source)\(product) (firebase.json)"
        : "\(manifest) is missing; correct functions.source in firebase.json"
    )
  }
}
