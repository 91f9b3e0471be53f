import ArgumentParser
import EmulatorSuite
import Foundation
import Logging
import OutboundHTTP
import ServiceLifecycle
import StatusCodes

/// `hearth start`: runs the suite until it is asked to stop.
struct Start: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Start the suite and deploy the functions of this folder.",
    discussion: """
      Serves the last deployment at once, then builds the functions that firebase.json names and \
      swaps them in. Ctrl-C stops: running functions get 1.5 seconds; events that they did not \
      finish are delivered again after the next start. A second Ctrl-C ends the suite at once.

        hearth start
        hearth start --project demo-app --data /tmp/app --no-build
        hearth start --watch
        hearth start --ephemeral --json --firestore-port 0 --functions-port 0
        hearth start --ephemeral --import ./seed --export-on-exit
      """
  )

  @OptionGroup var ports: Ports

  @Option(help: "The project's id; by default that of .firebaserc, else demo-no-project.")
  var project: String?

  @Option(
    help: ArgumentHelp(
      "The folder of documents, events and deployments. (default: .hearth beside firebase.json)",
      valueName: "folder"
    )
  )
  var data: String?

  @Flag(help: "Keep everything in a temporary folder, without --data, and remove it at the end.")
  var ephemeral = false

  @Flag(
    help: ArgumentHelp(
      "Deliver the events of one document in any order and at the same time, as production may.",
      discussion: "By default a function gets them one after the other; see `hearth faults`, too."
    )
  )
  var unorderedEvents = false

  @Flag(
    help: ArgumentHelp(
      "Refuse queries for which production would lack an index.",
      discussion: """
        What is declared in firestore.indexes.json, or the file that firebase.json names, is there. \
        `hearth indexes --write` adds what the queries so far need.
        """
    )
  )
  var strictIndexes = false

  @Flag(
    help: ArgumentHelp(
      "Allow everybody everything, whatever the security rules say.",
      discussion: """
        Without this, the rules of firestore.rules and database.rules.json, or of the files that \
        firebase.json names, decide on requests. See `hearth rules`.
        """
    )
  )
  var noRules = false

  @Option(
    name: .customLong("import"),
    help: ArgumentHelp(
      "Read an export, or a JSON file of documents, before anyone is served.",
      discussion: """
        Documents of the same name in the data folder are replaced, all others stay; no function \
        fires. See `hearth import`.
        """,
      valueName: "folder"
    )
  )
  var importFolder: String?

  @Option(
    name: .customLong("export-on-exit"),
    defaultAsFlag: "",
    help: ArgumentHelp(
      "Write an export when the suite stops, also by Ctrl-C; by default to the folder of --import.",
      discussion: """
        Replaces the export that is there, in one step. When it fails, the old one stays and the \
        exit code is 1. See `hearth export`.
        """,
      valueName: "folder"
    )
  )
  var exportOnExit: String?

  @Option(
    help: ArgumentHelp(
      "The address to listen on. (default: what firebase.json says, else 127.0.0.1)",
      discussion: """
        For a phone or another machine: 0.0.0.0, or this machine's address. Anyone who reaches it \
        can read, write and call everything.
        """,
      valueName: "address"
    )
  )
  var host: String?

  @Option(
    help: ArgumentHelp(
      "An origin whose web pages may use the suite; may be repeated.",
      discussion: "Pages of this machine and of *.localhost always may; all others are refused.",
      valueName: "origin"
    )
  )
  var allowOrigin: [String] = []

  @OptionGroup(title: "Functions") var functions: FunctionsOptions

  @Flag(
    help: ArgumentHelp(
      "Build and deploy whenever the functions' sources change.",
      discussion: """
        Follows the package's targets but its tests, packages it depends on by path, and .env \
        files, which need no build. What fails is shown, and the version before keeps serving.
        """
    )
  )
  var watch = false

  @Flag(
    help: "Print one JSON line with the addresses once the functions are deployed or failed to be."
  )
  var json = false

  @Flag(help: "Leave out the line that tells how each invocation ended.")
  var quiet = false

  @Flag(help: "Also log decisions, not only results.")
  var verbose = false

  @Option(help: "How the log on stderr looks; by default text on a terminal, else json.")
  var logFormat: LogFormat?

  func validate() throws {
    for origin in allowOrigin where origin != "null" && !origin.contains("://") {
      throw ValidationError(
        "--allow-origin is \(origin); give an origin such as https://app.example."
      )
    }
    try ProjectID.check(project)
    if ephemeral, let data {
      throw ValidationError(
        "--ephemeral keeps everything in a temporary folder, so --data \(data) would not be used. "
          + "Leave out one of the two; --import and --export-on-exit read and write other folders."
      )
    }
    guard exportOnExit != "" || importFolder != nil else {
      throw ValidationError("--export-on-exit needs a folder, unless --import names one.")
    }
    var isFolder: ObjCBool = true
    if exportOnExit == "", let importFolder,
      FileManager.default.fileExists(atPath: importFolder, isDirectory: &isFolder),
      !isFolder.boolValue
    {
      throw ValidationError("--import is a file; name a folder: --export-on-exit FOLDER")
    }
  }

  func run() async throws {
    let files = try ProjectFiles.ofWorkingFolder()
    let verbose = self.verbose
    let format = logFormat ?? (Terminal.isInteractive ? .text : .json)
    Terminal.serve(logFormat: format)
    LoggingSystem.bootstrap { label in
      var handler = TerminalLogHandler(label: label, format: format)
      handler.logLevel = verbose ? .debug : .info
      return handler
    }
    let project = project ?? files.defaultProject ?? ProjectID.standard
    let configuration = SuiteConfiguration(
      project: project,
      host: host ?? "127.0.0.1",
      hosts: host == nil ? files.emulators.hosts : [:],
      allowedOrigins: allowOrigin,
      ports: ports.byService(files.emulators.ports),
      movable: ports.movable(files.emulators.ports),
      hasConsole: files.emulators.hasConsole,
      isSingleProject: files.emulators.isSingleProject,
      dataFolder: data ?? files.folder + "/.hearth",
      isEphemeral: ephemeral,
      functions: functions.configuration(files, isWatched: watch),
      isOrdered: !unorderedEvents,
      indexesFile: strictIndexes ? files.firestoreIndexes : nil,
      rulesFile: noRules ? nil : files.firestoreRules,
      databaseRules: noRules ? [:] : try files.databaseRules(of: project),
      importFolder: importFolder.map(absolutePath),
      exportFolder: exportOnExit.map { absolutePath($0.isEmpty ? importFolder ?? "" : $0) },
      environment: ProcessInfo.processInfo.environment,
      version: Version.current
    )
    var report = StartReport(json: json, format: format, isQuiet: quiet)
    if let notice = RulesNotice.atStart(file: files.firestoreRules, isOff: noRules) {
      report.notesOnceUp.append(notice)
    }
    if files.hasDatabase, !noRules, configuration.databaseRules.isEmpty {
      report.notesOnceUp.append((RulesNotice.openDatabase, .notice))
    }
    if let note = files.emulators.missingNote(file: "firebase.json") {
      report.notesOnceUp.append((note, .notice))
    }
    report.notesOnceUp += files.misspelledKeys.map { ($0, .warning) }
    if configuration.functions == nil {
      report.hintWithoutFunctions =
        files.exists
        ? "\(files.folder)/firebase.json names no functions. `hearth init DIR` writes a package "
          + "with two."
        : "There is no firebase.json here or in a parent folder, so there is nothing to deploy. "
          + "Start in your project's folder, or write one with `hearth init DIR`."
    }
    let exposed = configuration.services.filter {
      !OutboundURL.isLoopback(host: configuration.host(of: $0))
    }
    if let first = exposed.first {
      let ports = exposed.compactMap { service in
        configuration.ports[service].map { (service.title, $0) }
      }.sorted { $0.1 < $1.1 }
      let text = LocalNetwork.warning(host: configuration.host(of: first), ports: ports)
      report.notesOnceUp.append((text, .warning))
    }
    try await serve(configuration, report)
  }

  private func serve(_ configuration: SuiteConfiguration, _ report: StartReport) async throws {
    let exports = exportOnExit != nil
    do {
      let suite = try Suite(
        configuration: configuration,
        logger: Logger(label: "hearth"),
        report: report.receive
      )
      let group = ServiceGroup(
        configuration: .init(
          services: [.init(service: suite)],
          logger: Logger(label: "lifecycle") { _ in SwiftLogNoOpLogHandler() }
        )
      )
      MemoryReturn.begin()
      SignalTrap.install([SIGINT, SIGTERM, SIGHUP, SIGQUIT]) { _ in
        report.note(
          "Stopping; another Ctrl-C ends the suite at once\(exports ? ", without the export" : "")."
        )
        StopDeadline.begin(for: suite, exports: exports)
        // The task ends by itself, because it only requests the shutdown.
        Task { await group.triggerGracefulShutdown() }
        return .ends
      }
      try await group.run()
      report.note("Stopped.")
    } catch let error as ExportOnExitError {
      throw CommandError(error.statusMessage)
    } catch let error as TakenPortsError {
      throw CommandError("Cannot start: \(await explanation(of: error, configuration))")
    } catch let error as any StatusConvertible {
      throw CommandError("Cannot start: \(error.statusMessage)")
    }
  }

  /// Names the suite that has the ports, if one does, and the command that leaves it alone.
  private func explanation(
    of error: TakenPortsError,
    _ configuration: SuiteConfiguration
  ) async -> String {
    var who = ""
    if error.services.contains(.hub), let port = configuration.ports[.hub] {
      let client = ControlClient(address: "\(configuration.host(of: .hub)):\(port)", token: nil)
      // Whatever else answers there is only another program.
      if case .running(let suite) = try? await client.suite() {
        who = " A suite of project \(suite.project) runs there, process \(suite.pid)."
      }
    }
    return "\(error.statusMessage).\(who) Stop it, or run both: hearth start --free-ports"
  }

  /// The port flags of the services; 0 requests a free port.
  struct Ports: ParsableArguments {
    @Flag(
      help: ArgumentHelp(
        "Listen on free ports, except where a port's flag names one.",
        discussion: "For a second suite beside the first. Other commands find it from its folder."
      )
    )
    var freePorts = false

    @Option(help: "Port of the console. (default: 4000, or a free one when that is taken)")
    var uiPort: Int?
    @Option(help: "Port of the hub. (default: 4400)")
    var hubPort: Int?
    @Option(help: "Port of the functions. (default: 5001)")
    var functionsPort: Int?
    @Option(help: "Port of Firestore, gRPC and REST. (default: 8080)")
    var firestorePort: Int?
    @Option(
      help: "Port of the Realtime Database. (default: 9000, or a free one when that is taken)"
    )
    var databasePort: Int?
    @Option(help: "Port of Auth. (default: 9099, or a free one when that is taken)")
    var authPort: Int?
    @Option(help: "Port of the task queues. (default: 9499, or a free one when that is taken)")
    var tasksPort: Int?
    @Option(help: "Port of the vector index. (default: 5080)")
    var vectorsPort: Int?

    /// The ports that flags request.
    private var requested: [SuiteService: Int] {
      let flags: [SuiteService: Int?] = [
        .ui: uiPort, .hub: hubPort, .functions: functionsPort, .firestore: firestorePort,
        .database: databasePort, .auth: authPort, .tasks: tasksPort, .vectors: vectorsPort,
      ]
      return flags.compactMapValues(\.self)
    }

    /// Returns the port of each service: of its flag, else of `firebase.json`, else Firebase's.
    ///
    /// With `--free-ports`, a service without a flag has 0.
    func byService(_ configured: [SuiteService: Int]) -> [SuiteService: Int] {
      let usual = SuiteConfiguration.defaultPorts.merging(configured) { $1 }
      return usual.mapValues { freePorts ? 0 : $0 }.merging(requested) { $1 }
    }

    /// Returns the services that may use a free port, as in Firebase's suite.
    ///
    /// A port that a flag or `firebase.json` names is fixed. So are the other services' ports,
    /// because people often type them.
    func movable(_ configured: [SuiteService: Int]) -> Set<SuiteService> {
      Set([.ui, .database, .auth, .tasks].filter { requested[$0] == nil && configured[$0] == nil })
    }

    func validate() throws {
      for (service, port) in requested where !(0...65_535).contains(port) {
        throw ValidationError("--\(service.rawValue)-port is \(port); give 0 to 65535.")
      }
    }
  }
}
