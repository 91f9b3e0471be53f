import ArgumentParser
import Foundation
import UnixSignals

/// The command that measures Hearth and comparable servers, and prints the results.
@main
struct BenchmarksCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Benchmarks",
    abstract: "Measure Hearth beside its neighbours in one run.",
    discussion: """
      Starts each server by itself on free ports, loads it, and stops it. The load comes from this \
      process and shares the machine's cores with the server, so read the numbers as ratios.

        start     hearth start until its first commit is acknowledged
        create    documents created over gRPC, ephemeral and durable, 1 and 16 clients
        get       documents read over gRPC, 1 and 16 clients
        queries   shapes of queries over 2000 documents and over eight times as many
        readers   commits beside eight readers of 10 000 documents
        listen    a change until 1 to 1000 listeners have it; first snapshots; idle listeners
        rules     requests that Psst's security rules decide, beside the administrator's
        contacts  Psst's contacts among 100 000 users, beside the same requests without rules
        trigger   a write until its function starts, 100 a second; 1000 writes at once
        drain     100 000 events that were queued before the server started
        faults    40 functions by themselves, then beside two that fail and crash
        cold      a worker's start until its first answer
        callable  calls of a function in its worker over HTTP/1.1, 1, 16 and 64 clients
        search    a message until its vector is found
        auth      sign-ups, sign-ins and checked tokens; a start with 100 000 users
        vectors   100 000 vectors of 1536 numbers: written, searched, started with
        memory    resident memory before and after creates and gets
        million   a million documents: their size on disk and in memory, a start with them
        imports   a gigabyte of documents in the form of Google's tools, imported at the start

      Without --only and --all it measures start, create, get, trigger, callable, cold, search, \
      auth and memory, in about two minutes. What fails, or a neighbour that hangs, is a line that says so; the \
      exit code is 1 only when a part of Hearth failed.

        make bench
        make bench-all
        .build/release/Benchmarks --only get,callable --seconds 5
      """
  )

  @Option(help: "Scenarios to run, separated by commas.")
  var only: String?

  @Flag(help: "All scenarios but vectors, nearest, million and imports; it takes some minutes.")
  var all = false

  @Option(help: "How long each load is measured.")
  var seconds = 2.0

  @Option(help: "The documents among which queries look first.")
  var queryDocuments = 2000

  @Option(
    help: ArgumentHelp(
      "The folder with hearth and the functions; by default that of this program.",
      valueName: "folder"
    )
  )
  var binaries: String?

  @Option(
    help: ArgumentHelp(
      "The virtual environment with Firebase's Python functions and NumPy.",
      valueName: "folder"
    )
  )
  var pythonEnvironment = ".build/benchmarks-venv"

  @Flag(name: .customLong("no-peer"), help: "Leave the neighbours out.")
  var skipsPeer = false

  @Flag(help: .hidden)
  var serveEcho = false

  /// Ten minutes beside faults show what accumulates; longer runs add nothing.
  private static let secondsMax = 600.0

  func validate() throws {
    guard seconds > 0, seconds <= Self.secondsMax else {
      throw ValidationError("--seconds is \(seconds); give more than 0 and at most 600.")
    }
    guard (100...1_000_000).contains(queryDocuments) else {
      throw ValidationError("--query-documents is \(queryDocuments); give 100 to 1 000 000.")
    }
    guard !all || only == nil else { throw ValidationError("Give --only or --all, not both.") }
    _ = try scenarios()
  }

  func run() async throws {
    if serveEcho { return try await EchoServer.run() }
    let own = URL(filePath: CommandLine.arguments[0]).standardizedFileURL.path
    let folder = binaries ?? URL(filePath: own).deletingLastPathComponent().path
    for name in ["hearth", "SampleFunctions", "psst-functions"]
    where !FileManager.default.isExecutableFile(atPath: "\(folder)/\(name)") {
      throw ValidationError("There is no \(folder)/\(name); `make bench` builds it.")
    }
    // Beside the binaries, because the temporary folder is not on a disk on some systems.
    let data = "\(folder)/benchmarks-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
    try Hearth.makeProject(of: data)
    defer {
      // Nothing in it is needed, and leftovers do no harm.
      try? FileManager.default.removeItem(atPath: data)
    }
    let search = ProcessInfo.processInfo.environment["PATH"] ?? ""
    let run = BenchmarkRun(
      hearth: Hearth(binaries: folder, folder: data),
      official: skipsPeer ? nil : OfficialEmulator(path: search),
      postgreSQL: skipsPeer ? nil : PostgreSQL(path: search),
      python: skipsPeer
        ? nil
        : PythonFunctions(
          environment: URL(filePath: pythonEnvironment).standardizedFileURL.path
        ),
      numPy: skipsPeer
        ? nil
        : NumPyScan(environment: URL(filePath: pythonEnvironment).standardizedFileURL.path),
      scenarios: try scenarios(),
      duration: .seconds(seconds),
      queryDocuments: queryDocuments,
      ownExecutable: own
    )
    print("\(ProcessInfo.processInfo.activeProcessorCount) cores, shared with the load generator\n")
    let began = ContinuousClock.now
    try await stoppingOnSignals { try await run.run() }
    print()
    Comparison(figures: run.figures).printTable()
    print("\nMeasured in \(Int((ContinuousClock.now - began) / .seconds(1))) s.")
    if run.figures.isMissing(.hearth) { throw ExitCode.failure }
  }

  private func scenarios() throws -> Set<Scenario> {
    guard let only else { return all ? Scenario.usual : Scenario.core }
    return try Set(
      only.split(separator: ",").map { name in
        guard let scenario = Scenario(rawValue: String(name)) else {
          let names = Scenario.allCases.map(\.rawValue).joined(separator: ", ")
          throw ValidationError("There is no scenario \(name); there are \(names).")
        }
        return scenario
      }
    )
  }

  /// Cancels `body` on Ctrl-C or SIGTERM, so that it stops the processes that it started.
  private func stoppingOnSignals(_ body: @escaping @Sendable () async throws -> Void) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask(operation: body)
      group.addTask {
        for await _ in await UnixSignalsSequence(trapping: .sigint, .sigterm) {
          throw BenchmarkError("Stopped by a signal.")
        }
      }
      defer { group.cancelAll() }
      try await group.next()
    }
  }
}
