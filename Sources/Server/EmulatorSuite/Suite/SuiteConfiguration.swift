package import Deployment
package import FunctionLogs

/// The services of the suite, with the names that `server.json` and the port flags use.
package enum SuiteService: String, Sendable, Hashable, CaseIterable {
  /// The console; Firebase's name for it is `ui`.
  case ui
  case firestore, database, auth, functions, tasks, vectors, hub

  /// The service's name for tables and messages.
  package var title: String {
    switch self {
    case .ui: "Console"
    case .firestore: "Firestore"
    case .database: "Realtime Database"
    case .auth: "Auth"
    case .functions: "Functions"
    case .tasks: "Tasks"
    case .vectors: "Vectors"
    case .hub: "Hub"
    }
  }
}

/// The settings of a suite; only the CLI reads flags, environment variables and files.
package struct SuiteConfiguration: Sendable {
  package var project: String
  /// The address that services bind to, unless `hosts` has another.
  package var host: String
  /// The addresses of services that bind to one of their own.
  package var hosts: [SuiteService: String]
  /// The web origins whose pages may use the suite, in addition to those of this machine.
  package var allowedOrigins: [String]
  /// The ports by service; 0 requests a free port.
  package var ports: [SuiteService: Int]
  /// The services that may use a free port if their own port is taken.
  package var movable: Set<SuiteService>
  /// False if the console is not served.
  package var hasConsole: Bool
  /// True if requests for other projects cause a warning.
  package var isSingleProject: Bool
  /// The folder for documents, events, vectors and deployments.
  ///
  /// With `isEphemeral`, commands find the suite by it, but nothing is stored there.
  package var dataFolder: String
  /// True if the data is kept in a temporary folder, not synced to disk and removed on exit.
  package var isEphemeral: Bool
  /// True if only processes that are given its address find the suite.
  package var isPrivate: Bool
  /// The functions to deploy; nil serves only an earlier deployment.
  package var functions: Functions?
  /// True if a function receives the events of one document one at a time, in order.
  package var isOrdered: Bool
  /// The absolute path of the file that declares the indexes available to queries.
  ///
  /// The file need not exist. Nil if queries require no indexes.
  package var indexesFile: String?
  /// The absolute path of the file with Firestore's security rules.
  ///
  /// The file need not exist. Nil allows everything.
  package var rulesFile: String?
  /// The absolute paths of the files with the security rules of the Realtime Database, by instance.
  ///
  /// The rules of all other instances allow everything.
  package var databaseRules: [String: String]
  /// The absolute path of an export that is imported before the suite serves clients.
  package var importFolder: String?
  /// The absolute path of the folder to which the suite exports its data when it stops.
  package var exportFolder: String?
  /// The environment of the starting process; workers see only allowed variables, such as `PATH`.
  package var environment: [String: String]
  /// The version that the hub reports.
  package var version: String

  /// The functions that `start` and `hearth deploy` deploy.
  package struct Functions: Sendable {
    package var source: FunctionsSource
    /// True if `start` builds before it deploys.
    package var builds: Bool
    /// True if `start` deploys; otherwise, the first `hearth deploy` does.
    package var deploysAtStart: Bool
    /// True if every change of the sources is deployed automatically.
    package var isWatched: Bool

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

  /// Creates a configuration; the ports default to Firebase's.
  package init(
    project: String = "demo-no-project",
    host: String = "127.0.0.1",
    hosts: [SuiteService: String] = [:],
    allowedOrigins: [String] = [],
    ports: [SuiteService: Int] = Self.defaultPorts,
    movable: Set<SuiteService> = [],
    hasConsole: Bool = true,
    isSingleProject: Bool = true,
    dataFolder: String = ".hearth",
    isEphemeral: Bool = false,
    isPrivate: Bool = false,
    functions: Functions? = nil,
    isOrdered: Bool = true,
    indexesFile: String? = nil,
    rulesFile: String? = nil,
    databaseRules: [String: String] = [:],
    importFolder: String? = nil,
    exportFolder: String? = nil,
    environment: [String: String] = [:],
    version: String
  ) {
    self.project = project
    self.host = host
    self.hosts = hosts
    self.allowedOrigins = allowedOrigins
    self.ports = ports
    self.movable = movable
    self.hasConsole = hasConsole
    self.isSingleProject = isSingleProject
    self.dataFolder = dataFolder
    self.isEphemeral = isEphemeral
    self.isPrivate = isPrivate
    self.functions = functions
    self.isOrdered = isOrdered
    self.indexesFile = indexesFile
    self.rulesFile = rulesFile
    self.databaseRules = databaseRules
    self.importFolder = importFolder
    self.exportFolder = exportFolder
    self.environment = environment
    self.version = version
  }

  /// The services that the suite serves.
  package var services: [SuiteService] {
    SuiteService.allCases.filter { $0 != .ui || hasConsole }
  }

  /// Returns the address that a service binds to.
  package func host(of service: SuiteService) -> String { hosts[service] ?? host }

  /// The functions to deploy once the services listen.
  var firstFunctions: Functions? { functions.flatMap { $0.deploysAtStart ? $0 : nil } }

  /// The ports of Firebase's own suite, and 5080 for vectors.
  package static let defaultPorts: [SuiteService: Int] = [
    .ui: 4000, .firestore: 8080, .database: 9000, .auth: 9099, .functions: 5001, .tasks: 9499,
    .vectors: 5080, .hub: 4400,
  ]
}

/// An event that a suite reports to the program that started it, in order.
package enum SuiteReport: Sendable {
  /// An import of an earlier run was interrupted.
  ///
  /// `command` completes it.
  case importUnfinished(folder: String, startTime: String, command: String)
  /// The export that the configuration names is being imported; the progress in words.
  case importProgress(String)
  /// The export that the configuration names has been imported.
  case imported(TransferSummary)
  /// There is no export to import yet; the suite will write it when it stops.
  case importSkipped(folder: String)
  /// All services listen.
  case listening(SuiteDescription)
  /// The deployment produced a line of output.
  case deployProgress(String)
  /// The first deployment ended; after a problem, an earlier deployment, if any, keeps serving.
  case ready(SuiteDescription, functions: [FunctionDescription], problem: String?)
  /// The source watch noticed a change, or reports the resulting deployment or a problem.
  case watched(String, isProblem: Bool)
  /// A function wrote a log line.
  case log(FunctionLogEntry)
  /// An ephemeral suite ended without its export on exit; the folder has its data.
  case exportMissed(data: String, project: String)
  /// The export on exit has been written.
  case exported(TransferSummary)
}
