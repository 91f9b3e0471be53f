import JSONText
import EmulatorSuite
import Foundation
import FunctionLogs
import Logging
import Manifests

/// The output of `hearth start` for a person, or with `--json` for a program.
struct StartReport: Sendable {
  var json: Bool
  var format: LogFormat
  /// True if the lines about ended invocations are left out.
  var isQuiet: Bool
  /// The notes to print once the services listen; a start that fails prints only its reason.
  var notesOnceUp: [(text: String, level: Logger.Level)] = []
  /// The advice for a start with nothing to deploy; nil if there are functions.
  var hintWithoutFunctions: String?

  func receive(_ report: SuiteReport) {
    switch report {
    case .listening:
      for (text, level) in notesOnceUp { note(text, level) }
      note("The services are up.")
    case .importProgress(let text): note("  Importing: \(text)", .info)
    case .imported(let summary): note(Import.text(summary))
    case .importSkipped(let folder):
      note("Nothing to import: there is no \(folder) yet; it is written at the end.")
    case .importUnfinished(let folder, let time, let command):
      note(
        "The import of \(folder) begun at \(time) was cut short, so the data are partly its own. "
          + "`\(command)` finishes it.",
        .warning
      )
    case .exportMissed(let data, let project):
      note(Self.missedExport(data, project), .warning)
    case .exported(let summary): note(Export.text(summary))
    case .deployProgress(let line): note("  " + line, .info)
    case .watched(let text, let isProblem): note(text, isProblem ? .error : .notice)
    case .ready(let description, let functions, let problem):
      if let problem { note("The deployment failed: \(problem)", .error) }
      if json {
        Terminal.print(json: Self.line(description))
      } else {
        Terminal.print(Self.table(description, functions: functions, problem: problem))
      }
      if functions.isEmpty, let hintWithoutFunctions { note(hintWithoutFunctions) }
    case .log(let entry) where isQuiet && entry.end != nil: break
    case .log(let entry):
      Terminal.note(safe: LogLine(entry).formatted(format))
    }
  }

  /// Returns the note about the data of a suite that ended without its export on exit.
  static func missedExport(_ data: String, _ project: String) -> String {
    "A suite ended without its export on exit. Its data are kept: "
      + "`hearth start --data \(data) --project \(project)` serves them."
  }

  /// Prints the progress of the start: plain text for a person, a log line for a program.
  func note(_ text: String, _ level: Logger.Level = .notice) {
    guard format == .text else {
      let message = text.trimmingCharacters(in: .whitespaces)
      let line = LogLine(service: "hearth", level: level, message: message)
      return Terminal.note(safe: line.formatted(format))
    }
    let lines = text.indented(by: 4)
    switch level {
    case .warning: Terminal.note(safe: Terminal.paint(lines, .yellow))
    case .error: Terminal.note(safe: Terminal.paint(lines, .red))
    case .info: Terminal.note(safe: Terminal.paint(lines, .dim))
    default: Terminal.note(lines)
    }
  }

  private static func line(_ suite: SuiteDescription) -> String {
    // Encoding a description of strings and numbers never fails.
    return (try? suite.jsonBytes()).map { String(decoding: $0, as: UTF8.self) }
      ?? ""
  }

  private static func table(
    _ suite: SuiteDescription,
    functions: [FunctionDescription],
    problem: String?
  ) -> String {
    func address(_ service: SuiteService) -> String {
      suite.services[service.rawValue].map { "\($0.host):\($0.port)" } ?? ""
    }
    let services = SuiteService.allCases.filter { suite.services[$0.rawValue] != nil }
    var rows = services.map { service in
      // Terminals make a link of the console's address.
      [service.title, (service == .ui ? "http://" : "") + address(service), "running"]
    }
    if functions.isEmpty, let index = services.firstIndex(of: .functions) {
      rows[index][2] = problem == nil ? "nothing deployed" : "deployment failed"
    }
    var parts = ["\n" + Terminal.table(["SERVICE", "ADDRESS", "STATE"], rows)]
    if !functions.isEmpty { parts.append(Functions.List.table(functions)) }
    parts.append(
      """
      Clients need:
        export FIRESTORE_EMULATOR_HOST=\(address(.firestore))
        export FIREBASE_DATABASE_EMULATOR_HOST=\(address(.database))
        export FIREBASE_AUTH_EMULATOR_HOST=\(address(.auth))
        export CLOUD_TASKS_EMULATOR_HOST=\(address(.tasks))
        export GCLOUD_PROJECT=\(ControlCharacters.escapedLine(suite.project))
      In the app:
        Firestore.firestore().useEmulator(withHost: "\(suite.services["firestore"]?.host ?? "")", \
      port: \(suite.services["firestore"]?.port ?? 0))
        Database.database().useEmulator(withHost: "\(suite.services["database"]?.host ?? "")", \
      port: \(suite.services["database"]?.port ?? 0))
        Auth.auth().useEmulator(withHost: "\(suite.services["auth"]?.host ?? "")", \
      port: \(suite.services["auth"]?.port ?? 0))
      \(functionsInApp(suite, functions))
      Ctrl-C stops.
      """
    )
    return parts.joined(separator: "\n\n")
  }

  /// Returns the lines by which an app reaches the functions, one for each region of callables.
  ///
  /// The app's Firebase client asks for `us-central1` unless it names another region.
  static func functionsInApp(
    _ suite: SuiteDescription,
    _ functions: [FunctionDescription]
  ) -> String {
    let address = suite.services["functions"]
    let regions = Set(functions.filter { $0.kind == .callable }.compactMap(\.region)).sorted()
    return (regions.isEmpty ? [FunctionEndpoint.defaultRegion] : regions).map { region in
      let named = region == FunctionEndpoint.defaultRegion ? "" : "region: \"\(region)\""
      return "  Functions.functions(\(named)).useEmulator(withHost: \"\(address?.host ?? "")\", "
        + "port: \(address?.port ?? 0))"
    }.joined(separator: "\n")
  }
}

extension FunctionDescription {
  /// The region in the URL; nil for a function without a URL.
  fileprivate var region: String? {
    url.flatMap { url in
      let parts = url.split(separator: "/")
      return parts.count == 5 ? String(parts[3]) : nil
    }
  }
}
