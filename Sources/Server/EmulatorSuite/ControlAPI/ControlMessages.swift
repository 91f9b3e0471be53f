package import WorkerPool

/// The address at which a service listens.
package struct ServiceAddress: Codable, Sendable, Hashable {
  package var host: String
  package var port: Int

  package init(host: String, port: Int) {
    self.host = host
    self.port = port
  }
}

/// The running suite: `DATA/server.json`, the line of `start --json`, `GET /hearth/v1/suite`.
package struct SuiteDescription: Codable, Sendable, Hashable {
  package var project: String
  package var pid: Int32
  /// The addresses by service: `hub`, `functions`, `firestore`, `database`.
  package var services: [String: ServiceAddress]
  /// The reason why the suite accepts no more writes, and a remedy; nil if all is well.
  package var problem: String?
  /// A text that says which clients may use the services.
  package var openTo: String?
  /// The path of `server.json`.
  package var serverFile: String?
  /// The data folder that an ephemeral suite has its temporary one in place of; nil for others.
  package var replacedFolder: String?
  /// The token that the control API requires as `Authorization: Bearer`; only in `server.json`.
  package var token: String?

  package init(
    project: String,
    pid: Int32,
    services: [String: ServiceAddress],
    openTo: String? = nil,
    serverFile: String? = nil,
    replacedFolder: String? = nil
  ) {
    self.openTo = openTo
    self.project = project
    self.pid = pid
    self.services = services
    self.serverFile = serverFile
    self.replacedFolder = replacedFolder
  }
}

extension SuiteDescription {
  /// The environment variables through which clients find this suite's services.
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

/// The figures of a function since the suite started: `GET /hearth/v1/functions/stats`.
package struct FunctionStats: Codable, Sendable, Hashable {
  package var name: String
  package var invocations: Int
  /// The number of invocations by outcome.
  ///
  /// The outcomes are `ok`, `refused` (4xx), `failed` (5xx), `crashed`, `timedOut`, `cancelled` and
  /// `notRun`.
  package var outcomes: [String: Int]
  package var secondsTotal: Double
  /// The median duration, rounded up to a bucket bound; nil if unknown or above all bounds.
  package var p50Seconds: Double?
  /// The 99th percentile of the duration, rounded up to a bucket bound; nil as for `p50Seconds`.
  package var p99Seconds: Double?
  package var workers: Int
  package var running: Int
  package var waiting: Int
  package var workerStarts: Int
  /// The number of workers that ended without being asked to.
  package var workerCrashes: Int
  /// The number of deliveries that are not settled.
  package var pending: Int
  /// The age of the oldest event that runs or could run now; nil if there is none.
  package var oldestSeconds: Double?
  /// The number of finished delivery attempts, by the resulting state.
  package var deliveries: [String: Int]
  /// The reason why all pending deliveries wait until a person acts; nil if they do not.
  package var waits: String?
  /// The code of the reason in `waits`.
  package var waitReason: String?
  /// The reason why the function has fewer workers than it needs; nil if it has enough.
  package var shortage: String?
}

/// The state of the trigger switch: `GET /hearth/v1/triggers`.
package struct TriggersDescription: Codable, Sendable, Hashable {
  /// True if events reach functions.
  package var isEnabled: Bool
  /// The time since triggers were disabled; nil if they are enabled.
  package var offSeconds: Double?
  /// The time until triggers are enabled again, unless the lease is renewed.
  package var onAgainSeconds: Double?
  /// The number of events since the start that reached no function because triggers were off.
  package var eventsSkipped: Int
  /// True if functions were deployed since the start.
  package var isDeployed: Bool
  /// The number of events that wait for the first deployment.
  package var eventsBeforeDeployment: Int
}

/// A deployed function in the form that `hearth functions list` shows.
package struct FunctionDescription: Codable, Sendable, Hashable {
  package var name: String
  package var kind: Kind
  /// The trigger of the function: an event kind and a pattern; nil for functions with a URL.
  package var trigger: String?
  /// The URL at which the function is called; nil for triggered functions.
  package var url: String?
  /// The names of the secrets that the function declares; nil if there are none.
  package var secrets: [String]?
  /// The ID of the debugger process that runs the function now; nil if there is none.
  package var debugger: Int32?
  /// The function's worker processes; nil if there are none.
  package var workers: [WorkerStatus]?
  /// The number of invocations that run now.
  package var running: Int?
  /// The number of invocations that wait for a worker.
  package var waiting: Int?

  /// The kind of trigger or endpoint that runs a function.
  package enum Kind: String, Codable, Sendable, Hashable {
    case callable, http, trigger, schedule, task, blocking
  }

  package init(name: String, kind: Kind, trigger: String?, url: String?) {
    self.name = name
    self.kind = kind
    self.trigger = trigger
    self.url = url
  }
}

/// A line of a deployment's progress; the last line is `deployed` or `failed`.
package struct DeployLine: Codable, Sendable, Hashable {
  package var kind: Kind
  package var text: String

  /// The meaning of a line.
  package enum Kind: String, Codable, Sendable, Hashable {
    case progress, deployed, failed
  }

  /// Creates a line in the form that `POST /hearth/v1/deployments` streams.
  package init(_ kind: Kind, _ text: String) {
    self.kind = kind
    self.text = text
  }
}

/// A deployment in the form that `hearth functions deployments` shows.
package struct DeploymentDescription: Codable, Sendable, Hashable {
  package var id: String
  /// The time of the deployment, in RFC 3339; nil for deployments of older versions.
  package var time: String?
  /// True if the deployment serves now.
  package var isCurrent: Bool
  package var functions: [String]
  /// A note about a partial deployment; nil if everything was deployed.
  package var note: String?
  /// Notes on waiting events of functions that were removed or restored.
  ///
  /// Only in the response to a rollback or a deletion.
  package var effects: [String]?
  /// The version of the manifest in which its binary describes the functions.
  package var protocolVersion: String
}

/// A delivery in the form that `hearth events` shows.
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
  /// The time of the next attempt; nil unless the delivery is pending and the time is known.
  package var due: String?
  /// The reason why a pending delivery does not run, as text.
  package var waits: String?
  /// The code of the reason in `waits`.
  package var waitReason: String?
  package var settled: String?
  package var error: String?
  /// The ID of the delivery whose function made the write that caused this event.
  package var cause: String?
  /// The ID of the trace that the log lines of its attempts have; only in `GET …/events/ID`.
  package var trace: String?

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

/// The outcome of a fired event.
package struct FireOutcome: Codable, Sendable, Hashable {
  package var succeeded: Bool
  package var milliseconds: Int
  package var error: String?

  package init(succeeded: Bool, milliseconds: Int, error: String?) {
    self.succeeded = succeeded
    self.milliseconds = milliseconds
    self.error = error
  }
}

/// The number of events or clients that a request acted on.
package struct EventCount: Codable, Sendable, Hashable {
  package var count: Int
}

/// The virtual time of the suite.
package struct ClockDescription: Codable, Sendable, Hashable {
  /// The current time, in RFC 3339.
  package var now: String
  /// The number of seconds by which the time is ahead of the machine's clock.
  package var aheadSeconds: Double
}

/// The decision of the security rules about one request.
package struct RuleDecisionDescription: Codable, Sendable, Hashable {
  /// The time of the decision, in RFC 3339.
  package var time: String
  package var method: String
  /// The path of the document, or a description of the query.
  package var path: String
  /// The caller, in the syntax of a rules file.
  package var auth: String
  package var isAllowed: Bool
  /// The rules that were evaluated, and the deciding expression.
  package var text: String
}
