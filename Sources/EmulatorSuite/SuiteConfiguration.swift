package import Deployment
package import Invocation

/// The services of the suite, by the names that `server.json` and the port flags use.
package enum SuiteService: String, Sendable, Hashable, CaseIterable {
  case firestore, functions, tasks, vectors, hub

  /// How tables call it.
  package var title: String {
    switch self {
    case .firestore: "Firestore"
    case .functions: "Functions"
    case .tasks: "Tasks"
    case .vectors: "Vectors"
    case .hub: "Hub"
    }
  }
}

/// Everything that a suite is told from outside; only the CLI reads flags, environment and files.
package struct SuiteConfiguration: Sendable {
  package var project: String
  /// The address that every service binds to.
  package var host: String
  /// Ports by service; 0 asks for a free one.
  package var ports: [SuiteService: Int]
  /// Those that take a free port when another program has theirs.
  package var movable: Set<SuiteService>
  /// Keeps documents, events, vectors and deployments; ignored when ephemeral.
  package var dataFolder: String
  /// Keeps everything in a temporary folder that is removed at the end, without syncing to disk.
  package var isEphemeral: Bool
  /// Where the functions come from; nil serves only what was deployed before, for good.
  package var functions: Functions?
  /// Whether the events of one document reach a function one after the other.
  package var isOrdered: Bool
  /// An export that is read before anyone is served; absolute.
  package var importFolder: String?
  /// Where an export is written when the suite stops; absolute.
  package var exportFolder: String?
  /// The starter's environment; workers see of it what the pool's allow-list names, such as `PATH`.
  package var environment: [String: String]
  /// What the hub reports as its version.
  package var version: String

  /// The functions that `start` and `hearth deploy` deploy.
  package struct Functions: Sendable {
    package var source: FunctionsSource
    /// Whether `start` builds before it deploys.
    package var builds: Bool
    /// Whether `start` deploys at all; without it the first `hearth deploy` does.
    package var deploysAtStart: Bool
    /// Whether every change of the sources is deployed.
    package var isWatched: Bool

    /// Functions to build, or to take as they were built.
    package init(
      source: FunctionsSource,
      builds: Bool = true,
      deploysAtStart: Bool = true,
      isWatched: Bool = false
    ) {
      self.source = source
      self.builds = builds
      self.deploysAtStart = deploysAtStart
      self.isWatched = isWatched
    }
  }

  /// A configuration; the ports default to Firebase's.
  package init(
    project: String = "demo-psst",
    host: String = "127.0.0.1",
    ports: [SuiteService: Int] = Self.defaultPorts,
    movable: Set<SuiteService> = [],
    dataFolder: String = ".hearth",
    isEphemeral: Bool = false,
    functions: Functions? = nil,
    isOrdered: Bool = true,
    importFolder: String? = nil,
    exportFolder: String? = nil,
    environment: [String: String] = [:],
    version: String
  ) {
    self.project = project
    self.host = host
    self.ports = ports
    self.movable = movable
    self.dataFolder = dataFolder
    self.isEphemeral = isEphemeral
    self.functions = functions
    self.isOrdered = isOrdered
    self.importFolder = importFolder
    self.exportFolder = exportFolder
    self.environment = environment
    self.version = version
  }

  /// The ports that Firebase's own suite uses, and 5080 for vectors.
  package static let defaultPorts: [SuiteService: Int] = [
    .firestore: 8080, .functions: 5001, .tasks: 9499, .vectors: 5080, .hub: 4400,
  ]
}

/// What a suite tells whoever runs it, in the order of its happening.
package enum SuiteReport: Sendable {
  /// An import that the last run began did not come to its end.
  case importUnfinished(folder: String, startTime: String)
  /// The export named for the start has been read.
  case imported(TransferSummary)
  /// There is none yet; the suite will write it when it stops.
  case importSkipped(folder: String)
  /// Every service listens.
  case listening(SuiteDescription)
  /// A line of the deployment's output.
  case deployProgress(String)
  /// The first deployment ended; with a problem the earlier one, if any, keeps serving.
  case ready(SuiteDescription, functions: [FunctionDescription], problem: String?)
  /// A change of the watched sources was seen, or was deployed or not.
  case watched(String, isProblem: Bool)
  /// A function wrote a line.
  case log(FunctionLogEntry)
  /// The export for the end has been written.
  case exported(TransferSummary)
}
