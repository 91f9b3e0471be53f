import Foundation

/// The parts of a run, named as in `--only`.
enum Scenario: String, CaseIterable, Sendable {
  case start, create, get, queries, readers, listen, rules, contacts, trigger, drain, faults,
    callable, cold, search, auth, vectors
  case nearest, memory, million, imports

  /// The scenarios that matter for most changes; they take about two minutes.
  static let core: Set<Scenario> = [
    .start, .create, .get, .trigger, .callable, .cold, .search, .auth, .memory,
  ]
  /// All scenarios except those with so many writes that they take longer than all others together.
  static let usual = Set(allCases).subtracting([.vectors, .nearest, .million, .imports])
}

/// A run of selected scenarios, with one session for each subject.
struct BenchmarkRun: Sendable {
  var hearth: Hearth
  var official: OfficialEmulator?
  var postgreSQL: PostgreSQL?
  var python: PythonFunctions?
  var numPy: NumPyScan?
  var scenarios: Set<Scenario>
  var duration: Duration
  /// The smaller number of documents that queries search.
  var queryDocuments: Int
  /// The path of the Benchmarks executable, which also runs the echo server.
  var ownExecutable: String
  let figures = Figures()

  /// The time in which caches and connections get ready.
  static let warmUp = Duration.milliseconds(500)
  /// The warm-up of the official emulator: uncompiled Java would not be a fair comparison.
  static let officialWarmUp = Duration.seconds(2)
  private static let echoWarmUp = Duration.milliseconds(200)
  private static let startRepetitions = 5
  private static let coldRepetitions = 15
  private static let longReadDocuments = 10_000
  private static let longReaders = 8
  private static let firestoreClients = [1, 16]
  private static let callableClients = [1, 16, 64]

  /// Measures all selected scenarios.
  ///
  /// A part that fails, or a server that hangs, prints a line. Throws only when the run is stopped.
  func run() async throws {
    try await part(.start) { try await measureStart() }
    try await part(.create, .get, .memory) { try await measureEphemeral() }
    try await part(.create) { try await measureDurable() }
    try await part(.queries) { try await measureQueries() }
    try await part(.readers) { try await measureReaders() }
    try await part(.listen) { try await measureListeners() }
    try await part(.rules) { try await measureRules() }
    try await part(.contacts) { try await measureContacts() }
    try await part(.nearest) { try await measureNearest() }
    try await part(.million) { try await measureMillion() }
    try await part(.imports) { try await measureImports() }
    if has(.start, .create, .get, .queries, .listen, .memory) { try await measureOfficial() }
    if has(.create, .get) { try await measurePostgreSQL() }
    try await part(.trigger, .callable) { try await measureFunctions() }
    try await part(.drain) { try await measureDrain() }
    try await part(.faults) { try await measureFaults() }
    try await part(.cold) { try await measureColdStart() }
    if has(.callable) {
      try await part("callable", of: .bareNIO) { try await measureEcho() }
      try await part("callable", of: .python) { try await measurePython() }
    }
    try await part(.search) { try await measureSearch() }
    try await part(.auth) { try await measureAuth() }
    try await part(.vectors) { try await measureVectors() }
  }

  private func has(_ any: Scenario...) -> Bool { !scenarios.isDisjoint(with: any) }

  func load(_ clients: Int, warmUp: Duration = Self.warmUp) -> Load {
    Load(clients: clients, warmUp: warmUp, duration: duration)
  }

  // MARK: Firestore

  private func measureStart() async throws {
    var times: [Duration] = []
    for _ in 0..<Self.startRepetitions {
      let clock = ContinuousClock()
      let began = clock.now
      times += [
        try await hearth.run(["--ephemeral", "--no-functions"]) { server in
          try await FirestoreLoad(address: server.firestore, project: server.project)
            .createOne("first/one")
          return clock.now - began
        }
      ]
    }
    times.sort()
    let each = times.map { Figures.text($0 / .milliseconds(1)) }.joined(separator: ", ")
    figures.record(
      .startMilliseconds,
      times[times.count / 2] / .milliseconds(1),
      note: "median of \(each)"
    )
  }

  private func measureEphemeral() async throws {
    try await hearth.run(["--ephemeral", "--no-functions"]) { server in
      let firestore = FirestoreLoad(address: server.firestore, project: server.project)
      if has(.memory) {
        try await firestore.createOne("first/one")
        recordMemory(.idleMegabytes, of: .hearth, ProcessMemory.megabytes(server.processID))
      }
      try await measure(firestore, of: .hearth, warmUp: Self.warmUp)
      if has(.memory) {
        recordMemory(.loadedMegabytes, of: .hearth, ProcessMemory.megabytes(server.processID))
      }
    }
  }

  private func measureDurable() async throws {
    try await hearth.run(["--no-functions", "--data", hearth.folder + "/durable"]) { server in
      let firestore = FirestoreLoad(address: server.firestore, project: server.project)
      for clients in Self.firestoreClients {
        let result = try await firestore.create(load(clients), collection: "create\(clients)")
        figures.record(.durableCreatesPerSecond(clients: clients), result)
      }
    }
  }

  /// Measures every query shape over `queryDocuments` and over eight times as many documents.
  private func measureQueries() async throws {
    for count in [queryDocuments, queryDocuments * 8] {
      try await hearth.run(["--ephemeral", "--no-functions"]) { server in
        let firestore = FirestoreLoad(address: server.firestore, project: server.project)
        try await measureQueries(firestore, of: .hearth, count, warmUp: Self.warmUp)
      }
    }
  }

  private func measureQueries(
    _ firestore: FirestoreLoad,
    of subject: Subject,
    _ count: Int,
    warmUp: Duration
  ) async throws {
    try await firestore.createAll(QueryShape.paths(count))
    // One run in advance, so that the server can learn from it, for example which indexes to build.
    for shape in QueryShape.allCases { _ = try await firestore.ask(shape, count, load(1)) }
    for shape in QueryShape.allCases {
      let result = try await firestore.ask(shape, count, load(1, warmUp: warmUp))
      let size = count == queryDocuments ? QuerySize.some : .eightTimes
      figures.record(
        .queryMilliseconds(shape, size),
        of: subject,
        result.milliseconds(0.5),
        note: "\(count) documents, p99 \(Figures.text(result.milliseconds(0.99))) ms"
      )
    }
  }

  /// Measures the commits of one client, alone and beside readers of a whole database.
  private func measureReaders() async throws {
    try await hearth.run(["--ephemeral", "--no-functions"]) { server in
      let firestore = FirestoreLoad(address: server.firestore, project: server.project)
      try await firestore.createAll((0..<Self.longReadDocuments).map { "long/d\($0)" })
      let alone = try await firestore.create(load(1), collection: "alone")
      async let reads = firestore.countAll(load(Self.longReaders))
      let beside = try await firestore.create(load(1), collection: "beside")
      figures.record(.longReadsPerSecond, try await reads)
      for (subject, commits) in [(Subject.withoutReaders, alone), (.hearth, beside)] {
        for percentile in [50, 99] {
          figures.record(
            .commitMilliseconds(percentile: percentile),
            of: subject,
            commits.milliseconds(Double(percentile) / 100),
            note: "longest \(Figures.text(commits.milliseconds(1))) ms"
          )
        }
      }
    }
  }

  /// Measures the size of a million documents and a start with them.
  private func measureMillion() async throws {
    let folder = hearth.folder + "/million"
    let arguments = ["--no-functions", "--data", folder]
    try await hearth.run(arguments) { server in
      let firestore = FirestoreLoad(address: server.firestore, project: server.project)
      try await firestore.createAll((0..<1_000_000).map { "many/d\($0)" })
      let size = ProcessMemory.megabytes(server.processID)
      recordMemory(.millionMegabytesInMemory, of: .hearth, size)
    }
    let files = try FileManager.default.subpathsOfDirectory(atPath: folder)
    let bytes = try files.reduce(0) { sum, file in
      let attributes = try FileManager.default.attributesOfItem(atPath: "\(folder)/\(file)")
      return sum + (attributes[.size] as? Int ?? 0)
    }
    figures.record(.millionMegabytesOnDisk, Double(bytes) / 1e6)
    let clock = ContinuousClock()
    let began = clock.now
    try await hearth.run(arguments) { server in
      try await FirestoreLoad(address: server.firestore, project: server.project)
        .createOne("first/one")
      figures.record(.millionStartMilliseconds, (clock.now - began) / .milliseconds(1))
    }
  }

  private func measureOfficial() async throws {
    guard let official else {
      return print("The official emulator (gcloud and Java) is not installed: skipped.")
    }
    try await part("start", of: .official) { try await measure(official) }
  }

  private func measure(_ official: OfficialEmulator) async throws {
    let clock = ContinuousClock()
    let began = clock.now
    try await official.run(in: hearth.folder) { process, address in
      let firestore = FirestoreLoad(address: address, project: "demo-psst")
      try await firestore.createOne("first/one")
      if has(.start) {
        figures.record(.startMilliseconds, of: .official, (clock.now - began) / .milliseconds(1))
      }
      if has(.memory) {
        let size = ProcessMemory.largestInGroup(process.processID)
        recordMemory(.idleMegabytes, of: .official, size)
      }
      try await part("create, get", of: .official) {
        try await measure(firestore, of: .official, warmUp: Self.officialWarmUp)
      }
      if has(.queries) {
        try await part("queries", of: .official) {
          let warmUp = Self.officialWarmUp
          try await measureQueries(firestore, of: .official, queryDocuments, warmUp: warmUp)
        }
      }
      if has(.listen) {
        try await part("listen", of: .official) {
          try await measureListeners(firestore, of: .official)
        }
      }
      if has(.memory) {
        let size = ProcessMemory.largestInGroup(process.processID)
        recordMemory(.loadedMegabytes, of: .official, size)
      }
    }
  }

  private func measurePostgreSQL() async throws {
    guard let postgreSQL else {
      return print("PostgreSQL is not installed, or only root is here to run it: skipped.")
    }
    try await part("create, get", of: .postgreSQL) { try await measure(postgreSQL) }
  }

  private func measure(_ postgreSQL: PostgreSQL) async throws {
    try await postgreSQL.run(in: hearth.folder) { address in
      let postgreSQL = PostgreSQLLoad(address: address)
      try await postgreSQL.prepare()
      for clients in Self.firestoreClients where has(.create) {
        let result = try await postgreSQL.create(load(clients), collection: "create\(clients)")
        figures.record(.durableCreatesPerSecond(clients: clients), of: .postgreSQL, result)
      }
      for clients in Self.firestoreClients where has(.get) {
        let result = try await postgreSQL.get(load(clients))
        figures.record(.getsPerSecond(clients: clients), of: .postgreSQL, result)
      }
    }
  }

  /// Measures creates and gets, and the memory after both.
  private func measure(
    _ firestore: FirestoreLoad,
    of subject: Subject,
    warmUp: Duration
  ) async throws {
    if has(.create, .memory) {
      for clients in Self.firestoreClients {
        let load = load(clients, warmUp: warmUp)
        let result = try await firestore.create(load, collection: "create\(clients)")
        figures.record(.createsPerSecond(clients: clients), of: subject, result)
      }
    }
    guard has(.get, .memory) else { return }
    try await firestore.prepare()
    for clients in Self.firestoreClients {
      let result = try await firestore.get(load(clients, warmUp: warmUp))
      figures.record(.getsPerSecond(clients: clients), of: subject, result)
    }
  }

  func recordMemory(
    _ metric: Metric,
    of subject: Subject,
    _ megabytes: Double?,
    note: String = ""
  ) {
    guard let megabytes else { return print("Memory is reported by /proc only: skipped.") }
    figures.record(metric, of: subject, megabytes, note: note)
  }

  // MARK: Functions

  private func measureFunctions() async throws {
    let project = try FunctionsProject(folder: hearth.folder + "/functions")
    let arguments = ["--ephemeral", "--executable", hearth.binaries + "/SampleFunctions"]
    try await hearth.run(arguments, in: project.folder) { server in
      let callable = CallableLoad(
        address: server.functions,
        path: "/\(server.project)/us-central1/echo"
      )
      try await callable.waitUntilServed()
      if has(.trigger) {
        let firestore = FirestoreLoad(address: server.firestore, project: server.project)
        try await TriggerLoad(
          firestore: firestore,
          output: project.output,
          server: server.processID,
          duration: duration
        ).run(figures)
      }
      if has(.callable) {
        for clients in Self.callableClients {
          try await measure(callable, of: .hearth, server.processID, load(clients))
        }
      }
      if has(.memory) {
        let workers = ProcessMemory.children(of: server.processID)
        let note = workers.map { "of \($0.count), shared pages counted once" } ?? ""
        let each = workers.map { $0.megabytes / Double($0.count) }
        recordMemory(.workerMegabytes, of: .hearth, each, note: note)
      }
    }
  }

  /// Measures calls and the processor use for each.
  private func measure(
    _ callable: CallableLoad,
    of subject: Subject,
    _ processID: Int32,
    _ load: Load
  ) async throws {
    let (calls, use) = try await ProcessorUse.counted(processID) { try await callable.run(load) }
    figures.record(.callablesPerSecond(clients: load.clients), of: subject, calls)
    // The processor time includes the calls of the warm-up.
    let share = (load.warmUp + load.duration) / load.duration
    let count = Int((Double(calls.count) * share).rounded())
    figures.record(use, for: .call(clients: load.clients), count: count, of: subject)
  }

  /// Measures forty functions, then the same forty beside two that fail and crash.
  private func measureFaults() async throws {
    let clocks = "\(FaultLoad.healthyFunctions)"
    let project = try FunctionsProject(
      folder: hearth.folder + "/faults",
      environment: ["SAMPLE_CLOCKS": clocks]
    )
    let arguments = ["--ephemeral", "--executable", hearth.binaries + "/SampleFunctions"]
    try await hearth.run(arguments, in: project.folder) { server in
      let firestore = FirestoreLoad(address: server.firestore, project: server.project)
      try await FaultLoad(firestore: firestore, output: project.output, duration: duration)
        .run(figures)
    }
  }

  /// Measures a server that starts with a hundred thousand undelivered events.
  private func measureDrain() async throws {
    let project = try FunctionsProject(folder: hearth.folder + "/drain")
    let data = ["--data", project.folder + "/data"]
    try await hearth.run(data + ["--no-functions"], in: project.folder) { server in
      let firestore = FirestoreLoad(address: server.firestore, project: server.project)
      try await firestore.createAll((0..<DrainLoad.events).map { "clocked/queued\($0)" })
    }
    let functions = ["--executable", hearth.binaries + "/SampleFunctions"]
    try await hearth.run(data + functions, in: project.folder) { server in
      try await DrainLoad(output: project.output, server: server.processID).run(figures)
    }
  }

  /// Measures the time from the start of a worker's process to the end of its first response.
  private func measureColdStart() async throws {
    let folder = hearth.folder
    func times(
      _ count: Int,
      _ run: (_ body: @escaping @Sendable (Address) async throws -> Duration) async throws ->
        Duration
    ) async throws -> [Duration] {
      var times: [Duration] = []
      for _ in 0..<count {
        let clock = ContinuousClock()
        let began = clock.now
        times += [
          try await run { address in
            try await CallableLoad(address: address, path: "/").firstAnswer()
            return clock.now - began
          }
        ]
      }
      return times.sorted()
    }
    let ours = try await times(Self.coldRepetitions) { body in
      let address = Address(port: try Address.freePort())
      var command = ServedProcess.Command(
        executable: hearth.binaries + "/SampleFunctions",
        arguments: [],
        folder: folder
      )
      command.environment = [
        "FUNCTION_TARGET": "echo", "PORT": "\(address.port)", "FUNCTIONS_EMULATOR": "true",
      ]
      return try await ServedProcess.run(command, ready: { _ in Bool?.none }, else: true) { _, _ in
        try await body(address)
      }
    }
    record(ours, of: .hearth)
    guard let python else { return }
    try await part("cold", of: .python) {
      let theirs = try await times(Self.startRepetitions) { body in
        try await python.run(in: folder, waits: false) { try await body($0) }
      }
      record(theirs, of: .python)
    }
  }

  private func record(_ times: [Duration], of subject: Subject) {
    figures.record(
      .coldStartMilliseconds,
      of: subject,
      times[times.count / 2] / .milliseconds(1),
      note:
        "median of \(times.count); longest \(Figures.text(times[times.count - 1] / .milliseconds(1)))"
    )
  }

  private func measureEcho() async throws {
    let command = ServedProcess.Command(
      executable: ownExecutable,
      arguments: ["--serve-echo"],
      folder: hearth.folder
    )
    try await ServedProcess.run(command) { line in
      Int(line).map { Address(port: $0) }
    } body: { process, address in
      let echo = CallableLoad(address: address, path: "/echo")
      for clients in Self.callableClients {
        let load = load(clients, warmUp: Self.echoWarmUp)
        try await measure(echo, of: .bareNIO, process.processID, load)
      }
    }
  }

  private func measurePython() async throws {
    guard let python else {
      return print("Firebase's Python functions are not installed: skipped.")
    }
    try await python.run(in: hearth.folder) { address in
      let callable = CallableLoad(address: address, path: "/")
      try await callable.waitUntilServed()
      for clients in Self.callableClients {
        figures.record(
          .callablesPerSecond(clients: clients),
          of: .python,
          try await callable.run(load(clients))
        )
      }
    }
  }

  /// Measures the time from writing a message until the vector index finds it by its text.
  private func measureSearch() async throws {
    let project = try FunctionsProject(folder: hearth.folder + "/search")
    let arguments = ["--ephemeral", "--executable", hearth.binaries + "/psst-functions"]
    try await hearth.run(arguments, in: project.folder) { server in
      let search = SearchLoad(
        firestore: FirestoreLoad(address: server.firestore, project: server.project),
        vectors: server.vectors
      )
      try await search.run(duration, figures)
    }
  }
}
