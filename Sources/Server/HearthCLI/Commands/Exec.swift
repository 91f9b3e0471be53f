import ArgumentParser
import EmulatorSuite
import Foundation
import FunctionLogs
import Identity
import Logging
import ServiceLifecycle
import StatusCodes

/// `hearth exec`: runs a command with a suite of its own.
struct Exec: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run a command beside a fresh suite, then stop it.",
    usage: "hearth exec [<options>] -- <command> ...",
    discussion: """
      Starts a suite on free ports that keeps nothing, deploys the functions of this folder, runs \
      the command with the addresses in its environment (FIRESTORE_EMULATOR_HOST, GCLOUD_PROJECT, \
      FIREBASE_EMULATOR_HUB, FUNCTIONS_EMULATOR_HOST, CLOUD_TASKS_EMULATOR_HOST and so on), waits \
      until every event that it caused is delivered, and exits as the command did: with its \
      status, or 128 and the number of the signal that ended it. Any number can run side by side.

        hearth exec -- pytest -q
        hearth exec --no-build --import ./seed -- sh -c 'python3 write.py && python3 check.py'
        hearth exec --executable .build/debug/my-functions --strict -- swift test

      Ctrl-C goes to the command; when none runs it stops the suite, and a second one ends it at \
      once. The suite's own warnings and the functions' are on stderr.
      """
  )

  @OptionGroup(title: "Functions") var functions: FunctionsOptions

  @Option(help: "The project's id; by default that of .firebaserc, else demo-no-project.")
  var project: String?

  @Option(
    name: .customLong("import"),
    help: ArgumentHelp("Read an export before the command runs.", valueName: "folder")
  )
  var importFolder: String?

  @Flag(help: "Allow everybody everything, whatever the security rules say.")
  var noRules = false

  @Option(
    help: ArgumentHelp(
      "How long to wait for events after the command has ended; 0 does not wait.",
      valueName: "seconds"
    )
  )
  var settleTimeout = 30.0

  @Flag(
    help: "Exit with 1 when the command succeeded but events failed, died or did not settle."
  )
  var strict = false

  @Flag(help: "Show the build, all of the log, and decisions.")
  var verbose = false

  @Argument(
    parsing: .postTerminator,
    help: ArgumentHelp("The command, after --.", valueName: "command")
  )
  var command: [String] = []

  func validate() throws {
    try ProjectID.check(project)
    guard !command.isEmpty else {
      throw ValidationError("Name the command after --, as in: hearth exec -- pytest -q")
    }
    guard (0...86_400).contains(settleTimeout) else {
      throw ValidationError("--settle-timeout is \(settleTimeout); give 0 to 86400 seconds.")
    }
  }

  func run() async throws {
    let files = try ProjectFiles.ofWorkingFolder()
    let level: Logger.Level = verbose ? .debug : .warning
    Terminal.serve(logFormat: .text)
    LoggingSystem.bootstrap { label in
      var handler = TerminalLogHandler(label: label, format: .text)
      handler.logLevel = level
      return handler
    }
    let project = project ?? files.defaultProject ?? ProjectID.standard
    let configuration = SuiteConfiguration(
      project: project,
      ports: Dictionary(uniqueKeysWithValues: SuiteService.allCases.map { ($0, 0) }),
      isEphemeral: true,
      isPrivate: true,
      functions: functions.configuration(files, isWatched: false),
      rulesFile: noRules ? nil : files.firestoreRules,
      databaseRules: noRules ? [:] : try files.databaseRules(of: project),
      importFolder: importFolder.map(absolutePath),
      environment: ProcessInfo.processInfo.environment,
      version: Version.current
    )
    if noRules { Terminal.note("hearth: \(Rules.offNote)") }
    let status = try await session(configuration)
    guard status == 0 else { throw ExitCode(status) }
  }

  /// Runs the suite and the command until both end, and returns the exit status.
  private func session(_ configuration: SuiteConfiguration) async throws -> Int32 {
    let (readiness, ready) = AsyncStream.makeStream(
      of: Ready.self,
      bufferingPolicy: .bufferingNewest(1)
    )
    let verbose = self.verbose
    do {
      let suite = try Suite(configuration: configuration, logger: Logger(label: "hearth")) {
        switch $0 {
        case .ready(let suite, _, let problem): ready.yield(Ready(suite: suite, problem: problem))
        case .exportMissed(let data, let project):
          Terminal.note(StartReport.missedExport(data, project))
        case .deployProgress(let line): if verbose { Terminal.note("  " + line) }
        case .log(let entry) where verbose || Self.isShown(entry.level):
          Terminal.note(safe: LogLine(entry).formatted(.text))
        default: break
        }
      }
      let group = ServiceGroup(
        configuration: .init(
          services: [.init(service: suite)],
          logger: Logger(label: "lifecycle") { _ in SwiftLogNoOpLogHandler() }
        )
      )
      let child = AttachedCommand(command)
      return try await withThrowingTaskGroup(of: Result<Int32, any Error>?.self) { tasks in
        tasks.addTask {
          defer { ready.finish() }
          try await group.run()
          return nil
        }
        tasks.addTask {
          let outcome: Result<Int32, any Error>
          do {
            outcome = .success(
              try await child.interruptible { try await run(child, readiness, suite.token) }
            )
          } catch {
            outcome = .failure(error)
          }
          // The suite stops gracefully, however the command ended.
          await group.triggerGracefulShutdown()
          return outcome
        }
        var outcome: Result<Int32, any Error>?
        for try await ended in tasks { outcome = ended ?? outcome }
        return try outcome?.get() ?? 1
      }
    } catch let error as any StatusConvertible {
      throw CommandError("Cannot start: \(error.statusMessage)")
    }
  }

  private struct Ready: Sendable {
    var suite: SuiteDescription
    var problem: String?
  }

  /// Runs the command once the functions are ready, then waits for the events that it caused.
  private func run(
    _ child: AttachedCommand,
    _ readiness: AsyncStream<Ready>,
    _ token: String
  ) async throws -> Int32 {
    var ready: Ready?
    for await first in readiness {
      ready = first
      break
    }
    // If the suite ended before it was ready, its own error explains more.
    guard let ready, let hub = ready.suite.services["hub"] else { return 1 }
    if let problem = ready.problem {
      throw CommandError("The deployment failed, so the command was not run: \(problem)")
    }
    var environment = ready.suite.clientEnvironment
    environment[HubToken.variable] = token
    let status = try await child.run(environment: environment)
    let client = ControlClient(address: "\(hub.host):\(hub.port)", token: token)
    let isWell = try await check(client)
    return status == 0 && strict && !isWell ? 1 : status
  }

  /// Returns true if all events settled without failure; prints those that did not.
  private func check(_ client: ControlClient) async throws -> Bool {
    var isWell = true
    let functions = try await client.get("/hearth/v1/functions", as: [FunctionDescription].self)
    // Without functions, no events are delivered.
    if settleTimeout > 0, !functions.isEmpty {
      do {
        try await settle(client)
      } catch let failure as CommandError {
        Terminal.note("hearth: " + failure.message.indented(by: 2))
        isWell = false
      }
    }
    let outcomes = [
      ("failed", "failed"), ("dead", "died"), ("pending", "failed, to be tried again later"),
    ]
    for (state, verb) in outcomes {
      let events = try await unsuccessful(state, client)
      guard !events.isEmpty else { continue }
      isWell = false
      let shown = events.prefix(Self.eventsShownMax).map { event in
        let error = event.error?.split(whereSeparator: \.isNewline).first.map { ": \($0)" } ?? ""
        return ControlCharacters.escapedLine("  \(event.id) on \(event.document)\(error)")
      }
      let more = events.count > shown.count ? ["  and \(events.count - shown.count) more"] : []
      let lines = ["hearth: \(counted(events.count, "event")) \(verb)"] + shown + more
      Terminal.note(lines.joined(separator: "\n"))
    }
    return isWell
  }

  /// Waits until all events are delivered, and a few seconds more for the retries of failed ones.
  private func settle(_ client: ControlClient) async throws {
    let deadline = ContinuousClock.now + min(Self.retryWaitMax, .seconds(settleTimeout))
    while true {
      _ = try await client.data(
        "POST",
        "/hearth/v1/settle?timeoutSeconds=\(settleTimeout)",
        timeout: .seconds(settleTimeout + 30)
      )
      guard ContinuousClock.now < deadline, try await !unsuccessful("pending", client).isEmpty
      else { return }
      try await Task.sleep(for: .milliseconds(100))
    }
  }

  /// Returns the events in a state that had an attempt without success.
  private func unsuccessful(
    _ state: String,
    _ client: ControlClient
  ) async throws -> [EventDescription] {
    try await client.get(
      "/hearth/v1/events?state=\(state)&limit=1000",
      as: [EventDescription].self
    ).filter { state != "pending" || $0.attempts > 0 && $0.error != nil }
  }

  private static func isShown(_ level: String) -> Bool {
    (Logger.Level(rawValue: level) ?? .info) >= .warning
  }

  /// The time that retries have after the last delivery.
  private static let retryWaitMax = Duration.seconds(3)
  /// The maximum number of events printed; events with the same cause look alike.
  private static let eventsShownMax = 10
}
