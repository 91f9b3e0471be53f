package import Deployment
package import Invocation

/// The services of the suite, by the names that `server.json` and the port flags use.
package enum SuiteService: String, Sendable, Hashable, CaseIterable {
  case firestore, functions, tasks, vectors, hub

  /// The service's name in tables.
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

/// All settings of a suite; only the CLI reads flags, environment and files.
package struct SuiteConfiguration: Sendable {
  package var project: String
  /// The address that every service binds to.
  package var host: String
  /// The origins whose pages may use the suite, besides those of this machine.
  package var allowedOrigins: [String]
  /// Ports by service; 0 asks for a free one.
  package var ports: [SuiteService: Int]
  /// The services that move to a free port when another program has theirs.
  package var movable: Set<SuiteService>
  /// The folder of documents, events, vectors and deployments; ignored when ephemeral.
  package var dataFolder: String
  /// Whether data is kept in a temporary folder, unsynced and removed at the end.
  package var isEphemeral: Bool
  /// The source of the functions; nil only serves earlier deployments.
  package var functions: Functions?
  /// Whether a function gets the events of one document one after the other.
  package var isOrdered: Bool
  /// The file of the indexes that queries must do with, as an absolute path.
  ///
  /// It need not exist. Nil when queries need none.
  package var indexesFile: String?
  /// The file of Firestore's security rules, as an absolute path.
  ///
  /// It need not exist. Nil allows everything.
  package var rulesFile: String?
  /// An export that is imported before anyone is served, as an absolute path.
  package var importFolder: String?
  /// Where an export is written when the suite stops, as an absolute path.
  package var exportFolder: String?
  /// The starter's environment; workers see only what the pool's allow-list names, such as `PATH`.
  package var environment: [String: String]
  /// What the hub reports as its version.
  package var version: String

  /// The functions that `start` and `hearth deploy` deploy.
  package struct Functions: Sendable {
    package var source: FunctionsSource
    /// Whether `start` builds before it deploys.
    package var builds: Bool
    /// Whether `start` deploys at all; otherwise the first `hearth deploy` does.
    package var deploysAtStart: Bool
    /// Whether every change of the sources is deployed.
    package var isWatched: Bool

    /// Functions to build, or to take as already built.
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
    allowedOrigins: [String] = [],
    ports: [SuiteService: Int] = Self.defaultPorts,
    movable: Set<SuiteService> = [],
    dataFolder: String = ".hearth",
    isEphemeral: Bool = false,
    functions: Functions? = nil,
    isOrdered: Bool = true,
    indexesFile: String? = nil,
    rulesFile: String? = nil,
    importFolder: String? = nil,
    exportFolder: String? = nil,
    environment: [String: String] = [:],
    version: String
  ) {
    self.project = project
    self.host = host
    self.allowedOrigins = allowedOrigins
    self.ports = ports
    self.movable = movable
    self.dataFolder = dataFolder
    self.isEphemeral = isEphemeral
    self.functions = functions
    self.isOrdered = isOrdered
    self.indexesFile = indexesFile
    self.rulesFile = rulesFile
    self.importFolder = importFolder
    self.exportFolder = exportFolder
    self.environment = environment
    self.version = version
  }

  /// The functions to deploy once the services listen.
  var firstFunctions: Functions? { functions.flatMap { $0.deploysAtStart ? $0 : nil } }

  /// The ports that Firebase's own suite uses, and 5080 for vectors.
  package static let defaultPorts: [SuiteService: Int] = [
    .firestore: 8080, .functions: 5001, .tasks: 9499, .vectors: 5080, .hub: 4400,
  ]
}

/// What a suite reports to its starter, in the order of events.
package enum SuiteReport: Sendable {
  /// An import that the last run began did not complete.
  case importUnfinished(folder: String, startTime: String)
  /// The export named for the start has been imported.
  case imported(TransferSummary)
  /// There is no export to import yet; the suite will write it when it stops.
  case importSkipped(folder: String)
  /// Every service listens.
  case listening(SuiteDescription)
  /// A line of the deployment's output.
  case deployProgress(String)
  /// The first deployment ended; after a problem an earlier deployment, if any, keeps serving.
  case ready(SuiteDescription, functions: [FunctionDescription], problem: String?)
  /// The watch saw a change of the sources, or reports its deployment or a problem.
  case watched(String, isProblem: Bool)
  /// A function wrote a line.
  case log(FunctionLogEntry)
  /// The export at the end has been written.
  case exported(TransferSummary)
}
