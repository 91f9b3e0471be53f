package import WorkerPool

/// Where a service listens.
package struct ServiceAddress: Codable, Sendable, Hashable {
  package var host: String
  package var port: Int

  /// An address as clients dial it.
  package init(host: String, port: Int) {
    self.host = host
    self.port = port
  }
}

/// The running suite: `DATA/server.json`, the line of `start --json`, `GET /hearth/v1/suite`.
package struct SuiteDescription: Codable, Sendable, Hashable {
  package var project: String
  package var pid: Int32
  /// Addresses by service: `hub`, `functions`, `firestore`, `vectors`.
  package var services: [String: ServiceAddress]
  /// Why the suite takes no more writes, and what to do; nil while all is well.
  package var problem: String?
  /// Who may use the services, for people.
  package var openTo: String?
  /// The path of `server.json`.
  package var serverFile: String?
  /// What the control API asks for as `Authorization: Bearer`; only in `server.json`.
  package var token: String?

  /// A suite that listens.
  package init(
    project: String,
    pid: Int32,
    services: [String: ServiceAddress],
    openTo: String? = nil,
    serverFile: String? = nil
  ) {
    self.openTo = openTo
    self.project = project
    self.pid = pid
    self.services = services
    self.serverFile = serverFile
  }
}

extension SuiteDescription {
  /// The environment variables by which clients find this suite's services.
  package var clientEnvironment: [String: String] {
    var environment = ["GCLOUD_PROJECT": project, "GOOGLE_CLOUD_PROJECT": project]
    for (service, variable) in Self.variables {
      environment[variable] = services[service].map { "\($0.host):\($0.port)" }
    }
    if let vectors = services["vectors"] {
      environment["HEARTH_VECTORS_HOST"] = "http://\(vectors.host):\(vectors.port)"
    }
    return environment
  }

  /// The variables by service, with Firebase's names where they exist.
  private static let variables = [
    "hub": "FIREBASE_EMULATOR_HUB", "firestore": "FIRESTORE_EMULATOR_HOST",
    "functions": "FUNCTIONS_EMULATOR_HOST", "tasks": "CLOUD_TASKS_EMULATOR_HOST",
    "auth": "FIREBASE_AUTH_EMULATOR_HOST", "database": "FIREBASE_DATABASE_EMULATOR_HOST",
    "storage": "FIREBASE_STORAGE_EMULATOR_HOST",
  ]
}

/// What a function has done since the suite's start: `GET /hearth/v1/functions/stats`.
package struct FunctionStats: Codable, Sendable, Hashable {
  package var name: String
  package var invocations: Int
  /// Invocations by how they ended: `ok`, `refused` (4xx), `failed` (5xx), `crashed`, `timedOut`,
  /// `cancelled`, `notRun`.
  package var outcomes: [String: Int]
  package var secondsTotal: Double
  /// The time within which half, and 99 of 100 ended, rounded up to a class of times; nil for none.
  package var p50Seconds: Double?
  package var p99Seconds: Double?
  package var workers: Int
  package var running: Int
  package var waiting: Int
  package var workerStarts: Int
  /// Workers that ended although nobody had asked them to.
  package var workerCrashes: Int
  /// Deliveries that are not settled, and the age of the oldest event that runs or could run now.
  package var pending: Int
  package var oldestSeconds: Double?
  /// Tries of deliveries that have ended, by the state that they left.
  package var deliveries: [String: Int]
  /// What holds up all pending deliveries until somebody acts, and the name of the reason.
  package var waits: String?
  package var waitReason: String?
  /// Why the function has fewer workers than it needs; nil when it has enough.
  package var shortage: String?
}

/// Whether events reach functions: `GET /hearth/v1/triggers`.
package struct TriggersDescription: Codable, Sendable, Hashable {
  /// Whether somebody has left the triggers on.
  package var isEnabled: Bool
  /// How long triggers have been off, and when they are on again unless that is renewed.
  package var offSeconds: Double?
  package var onAgainSeconds: Double?
  /// The events since the start that reached no function because triggers were off.
  package var eventsPassedOver: Int
  /// Whether functions were deployed since the start.
  package var isDeployed: Bool
  /// The events that wait for the first deployment.
  package var eventsBeforeDeployment: Int
}

/// A deployed function as `hearth functions list` shows it.
package struct FunctionDescription: Codable, Sendable, Hashable {
  package var name: String
  package var kind: Kind
  /// What fires the function: an event kind and a pattern; nil for functions with a URL.
  package var trigger: String?
  /// The URL at which the function is called; nil for triggered functions.
  package var url: String?
  /// The names of the secrets that the function declares; nil for none.
  package var secrets: [String]?
  /// The debugger's process that runs the function now, or nil.
  package var debugger: Int32?
  /// The function's worker processes; nil when none runs.
  package var workers: [WorkerStatus]?
  /// The invocations that run at this moment, and those that wait for a worker.
  package var running: Int?
  package var waiting: Int?

  /// What makes a function run.
  package enum Kind: String, Codable, Sendable, Hashable {
    case callable, http, trigger, schedule, task
  }

  /// A function with its trigger or URL.
  package init(name: String, kind: Kind, trigger: String?, url: String?) {
    self.name = name
    self.kind = kind
    self.trigger = trigger
    self.url = url
  }
}

/// One line of a deployment's progress; the last is `deployed` or `failed`.
package struct DeployLine: Codable, Sendable, Hashable {
  package var kind: Kind
  package var text: String

  /// What the line says.
  package enum Kind: String, Codable, Sendable, Hashable {
    case progress, deployed, failed
  }

  /// A line as `POST /hearth/v1/deployments` streams it.
  package init(_ kind: Kind, _ text: String) {
    self.kind = kind
    self.text = text
  }
}

/// A deployment as `hearth functions deployments` shows it.
package struct DeploymentDescription: Codable, Sendable, Hashable {
  package var id: String
  /// When the deployment was made, in RFC 3339; nil for those of older versions.
  package var time: String?
  /// Whether the deployment serves now.
  package var isCurrent: Bool
  package var functions: [String]
  /// What was done, unless everything was deployed.
  package var note: String?
  /// Sentences on waiting events of functions that are not deployed any more, or again; only in the
  /// answer to a rollback or a deletion.
  package var effects: [String]?
  /// The version of the manifest by which its binary describes the functions.
  package var protocolVersion: String
}

/// A delivery as `hearth events` shows it.
package struct EventDescription: Codable, Sendable, Hashable {
  package var id: String
  /// The state of the stored delivery, or `running`.
  package var state: String
  package var function: String
  /// The document's path, or another subject of the event.
  package var document: String
  package var kind: String
  package var attempts: Int
  package var crashes: Int
  /// The commit time, in RFC 3339.
  package var time: String
  /// When the delivery is tried next; nil unless it is pending and that time is known.
  package var due: String?
  /// Why a pending delivery does not run, in words, and the name of the reason.
  package var waits: String?
  package var waitReason: String?
  package var settled: String?
  package var error: String?
  /// The id of the delivery that made a function write what this event is about.
  package var cause: String?

  /// A delivery by its parts.
  package init(
    id: String,
    state: String,
    function: String,
    document: String,
    kind: String,
    attempts: Int,
    crashes: Int,
    time: String,
    due: String?,
    settled: String?,
    error: String?,
    cause: String? = nil
  ) {
    self.id = id
    self.state = state
    self.function = function
    self.document = document
    self.kind = kind
    self.attempts = attempts
    self.crashes = crashes
    self.time = time
    self.due = due
    self.settled = settled
    self.error = error
    self.cause = cause
  }
}

/// How a fired event ended.
package struct FireOutcome: Codable, Sendable, Hashable {
  package var succeeded: Bool
  package var milliseconds: Int
  package var error: String?

  /// The outcome of one invocation.
  package init(succeeded: Bool, milliseconds: Int, error: String?) {
    self.succeeded = succeeded
    self.milliseconds = milliseconds
    self.error = error
  }
}

/// How many events a request acted on.
package struct EventCount: Codable, Sendable, Hashable {
  package var count: Int
}

/// The suite's time.
package struct ClockDescription: Codable, Sendable, Hashable {
  /// The present time, in RFC 3339.
  package var now: String
  /// How far the time has jumped ahead of the machine's.
  package var aheadSeconds: Double
}

/// What the security rules said to one request.
package struct RuleDecisionDescription: Codable, Sendable, Hashable {
  /// In RFC 3339.
  package var time: String
  package var method: String
  /// The document, or what a query looks for.
  package var path: String
  /// The caller as a rules file would write it.
  package var auth: String
  package var isAllowed: Bool
  /// The rules that were asked, and what decided.
  package var text: String
}
