import ArgumentParser
import DatabaseRules
import EmulatorSuite
import Foundation
import SecurityRules

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
    let files = try ProjectFiles.ofWorkingFolder()
    var findings = await Machine.toolchain()
    findings += settings(files)
    findings.append(
      Machine.dataFolder(
        suite.dataFolder ?? files.folder + "/" + SuiteLocation.defaultFolder
      )
    )
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
      findings.append(rules(files))
      let other = await otherSuite(files)
      findings.append(
        other.map { other in
          Finding(
            "suite",
            .fix,
            "none of this folder is running, and a suite of project \(other.project), process "
              + "\(other.pid), has its ports; `hearth start --free-ports` starts one beside it"
          )
        } ?? Finding("suite", .note, "none is running; `hearth start` starts one")
      )
      let taken = other.map { Set($0.services.values.map(\.port)) } ?? []
      findings += Machine.ports(files.emulators.ports, except: taken)
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

  /// Returns the suite of another project or folder that has the hub's port; nil if none has.
  private func otherSuite(_ files: ProjectFiles) async -> SuiteDescription? {
    let host = files.emulators.hosts[.hub] ?? "127.0.0.1"
    guard
      let port = files.emulators.ports[.hub] ?? SuiteConfiguration.defaultPorts[.hub], port != 0
    else { return nil }
    // Whatever else answers there is only another program.
    guard
      case .running(let suite) = try? await ControlClient(address: "\(host):\(port)").suite()
    else { return nil }
    return suite
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
    if let note = files.emulators.missingNote(file: "firebase.json") {
      findings.append(Finding("emulators", .note, note))
    }
    findings += files.misspelledKeys.map { Finding("firebase.json", .fix, $0) }
    if let path = files.storageRules { findings.append(storageRules(path)) }
    findings += databaseRules(files)
    let project =
      suite.project.map { "\($0) (--project)" }
      ?? files.defaultProject.map { "\($0) (.firebaserc)" }
      ?? "\(ProjectID.standard) (default; no .firebaserc)"
    findings.append(Finding("project", .ok, project))
    let environment = ProcessInfo.processInfo.environment
    for name in ["FIREBASE_EMULATOR_HUB", "FIRESTORE_EMULATOR_HOST", "GCLOUD_PROJECT"] {
      if let value = environment[name] {
        findings.append(Finding(name, .ok, "\(value) (environment)"))
      }
    }
    return findings
  }

  private func storageRules(_ path: String) -> Finding {
    let exists = FileManager.default.fileExists(atPath: path)
    return Finding(
      "storage rules",
      isWell: exists,
      exists ? path : "\(path) is missing; write it, or correct storage.rules in firebase.json"
    )
  }

  /// Reports the rules of the Realtime Database that the next start loads.
  private func databaseRules(_ files: ProjectFiles) -> [Finding] {
    let check = "database rules"
    let project = suite.project ?? files.defaultProject ?? ProjectID.standard
    let instances: [String: String]
    do { instances = try files.databaseRules(of: project) } catch {
      return [Finding(check, .fix, error.message)]
    }
    guard !instances.isEmpty else {
      return files.hasDatabase ? [Finding(check, .note, RulesNotice.openDatabase)] : []
    }
    return Dictionary(grouping: instances, by: \.value).sorted { $0.key < $1.key }.map { file in
      let names = file.value.map(\.key).sorted().joined(separator: ", ")
      do {
        _ = try DatabaseRuleset(parsing: String(contentsOfFile: file.key, encoding: .utf8))
        return Finding(check, .ok, "\(file.key) decides on the requests of apps to \(names)")
      } catch let error as DatabaseRulesError {
        return Finding(check, .fix, "\(file.key):\(error)")
      } catch {
        return Finding(
          check,
          .fix,
          FileManager.default.fileExists(atPath: file.key)
            ? "\(file.key) cannot be read; give its owner the right to, or name another file"
            : "\(file.key) is missing; write it, or correct database.rules in firebase.json"
        )
      }
    }
  }

  private func functions(_ files: ProjectFiles) -> Finding {
    guard let source = files.functionsSource else {
      return Finding(
        "functions",
        .note,
        files.exists
          ? "\(files.folder)/firebase.json names none; set functions.source in it"
          : "there is no firebase.json here or in a parent folder; run doctor in your project, "
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

  /// Reports the rules that the next start loads.
  private func rules(_ files: ProjectFiles) -> Finding {
    guard let path = files.firestoreRules else {
      return Finding(
        "security rules",
        .note,
        "no firestore.rules here, so everybody may read and write everything in Firestore"
      )
    }
    let name = URL(filePath: path).lastPathComponent
    do {
      return rules(name: name, try String(contentsOfFile: path, encoding: .utf8))
    } catch {
      return Finding(
        "security rules",
        .fix,
        FileManager.default.fileExists(atPath: path)
          ? "\(path) cannot be read; give its owner the right to, or name another file"
          : "\(path) is missing; write it, or correct firestore.rules in firebase.json"
      )
    }
  }

  /// Reports whom rules keep from something.
  func rules(name: String, _ content: String) -> Finding {
    if let open = RulesNotice.openness(name: name, content) {
      return Finding("security rules", .note, open)
    }
    do {
      _ = try Ruleset(name: name, content: content)
      return Finding("security rules", .ok, "\(name) decides on the requests of apps")
    } catch {
      return Finding(
        "security rules",
        .fix,
        "\(name) has mistakes; `hearth rules check` names them"
      )
    }
  }
}
