package import Manifests

/// The resources that a Google project needs for the functions of a manifest.
///
/// The plan is a value: it is decided once, and then rendered and compared.
package struct CloudPlan: Sendable, Hashable {
  package var settings: ProductionSettings
  package var services: [Service] = []
  package var triggers: [Trigger] = []
  package var jobs: [Job] = []
  package var queues: [Queue] = []
  /// The functions that Auth asks before a sign-up or sign-in.
  package var blocking: [Blocking] = []
  /// The names of the secrets, sorted.
  package var secrets: [String] = []
  /// The databases, sorted; always with `(default)`.
  package var databases: [String] = ["(default)"]
  /// The topics of Pub/Sub that functions listen to, sorted.
  package var topics: [String] = []
  /// The differences from the emulator, and what is not generated, in words.
  package var warnings: [Warning] = []

  /// A function as a service of Cloud Run.
  package struct Service: Sendable, Hashable {
    package var function: String
    package var name: String
    package var region: String
    /// The name in Terraform, unique among the services.
    package var label: String
    package var memoryMebibytes: Int
    /// The number of CPUs as Cloud Run writes it, such as `1` or `0.5`.
    package var cpu: String
    package var timeoutSeconds: Int
    package var concurrency: Int
    package var minInstances: Int?
    package var maxInstances: Int?
    package var secrets: [String]
    package var environment: [Variable]
    /// True if everybody may send requests; the function itself checks tokens.
    package var isPublic: Bool
    /// True for the first generation of Cloud Run's sandbox, which small instances need.
    package var needsFirstGeneration: Bool
  }

  /// A variable of a service.
  package struct Variable: Sendable, Hashable {
    package var name: String
    /// The value; nil for the ID of the project.
    package var value: String?
  }

  /// A trigger of Eventarc.
  package struct Trigger: Sendable, Hashable {
    package var service: Service
    package var kind: Kind
    package var eventType: String
    /// The attributes with exact values, sorted by name, without the type.
    package var filters: [Filter]
    /// The attributes with patterns, sorted by name.
    package var patterns: [Filter]
    package var retries: Bool
    /// The bounds of the delay between retries; Eventarc's own are 10 to 600 seconds.
    package var minDelaySeconds: Int
    package var maxDelaySeconds: Int

    /// The origin of the events.
    package enum Kind: String, Sendable, Hashable {
      case firestore, database, topic, storage, audit
    }

    /// The topic of Pub/Sub; nil for other kinds.
    var topic: String? {
      kind == .topic ? filters.first { $0.name == "topic" }?.value : nil
    }
  }

  /// An attribute of an event and the value or pattern that it must have.
  package struct Filter: Sendable, Hashable {
    package var name: String
    package var value: String
  }

  /// A job of Cloud Scheduler.
  package struct Job: Sendable, Hashable {
    package var service: Service
    package var schedule: String
    package var timeZone: String
    package var retryCount: Int
    package var maxRetrySeconds: Double
    package var minBackoffSeconds: Double
    package var maxBackoffSeconds: Double
    package var maxDoublings: Int
  }

  /// A queue of Cloud Tasks.
  package struct Queue: Sendable, Hashable {
    package var service: Service
    package var maxConcurrentDispatches: Int
    package var maxDispatchesPerSecond: Double
    /// The number of attempts; -1 for no bound.
    package var maxAttempts: Int
    /// The time for retries; nil for no bound.
    package var maxRetrySeconds: Double?
    package var minBackoffSeconds: Double
    package var maxBackoffSeconds: Double
    package var maxDoublings: Int
  }

  /// A function that Auth asks.
  package struct Blocking: Sendable, Hashable {
    package var service: Service
    /// The event in the words of Identity Platform: `beforeCreate` or `beforeSignIn`.
    package var event: String
  }

  /// A difference from the emulator, or something that is not generated.
  package struct Warning: Sendable, Hashable, CustomStringConvertible {
    /// The function; nil if the warning is about all.
    package var function: String?
    package var text: String

    package var description: String { function.map { "\($0): \(text)" } ?? text }
  }

  /// Plans the resources of a manifest.
  ///
  /// Throws ``PlanError`` if two functions would have the same service, if a name does not fit, or
  /// if a secret has the name of a variable that is set anyway.
  package init(
    functions: [String: FunctionEndpoint],
    settings: ProductionSettings
  ) throws(PlanError) {
    self.settings = settings
    // A secret of one function is a secret in all: its value must not be readable in a file.
    secrets = Set(
      functions.values.flatMap { ($0.secretEnvironmentVariables ?? []).map(\.key) }
    ).sorted()
    let hidden = ProductionChecks.variablesOfCloudRun.union(secrets)
    self.settings.environment = settings.environment.filter { !hidden.contains($0.key) }
    var problems: [String] = []
    var owners: [String: String] = [:]
    for (function, endpoint) in functions.sorted(by: { $0.key < $1.key }) {
      let name: String
      do throws(PlanError) {
        name = try ServiceName.make(from: function)
      } catch {
        problems.append(error.description)
        continue
      }
      if let other = owners.updateValue(function, forKey: name) {
        problems.append(
          "\(other) and \(function) would both be the service \(name), because Cloud Run has no "
            + "upper case and no underscore; rename one of them."
        )
        continue
      }
      problems += ProductionChecks.problems(of: function, endpoint)
      add(function, endpoint, as: name)
    }
    guard problems.isEmpty else { throw PlanError(problems.joined(separator: "\n")) }
    secrets = Set(services.flatMap(\.secrets)).sorted()
    topics = Set(triggers.compactMap(\.topic)).sorted()
    databases = Set(["(default)"] + triggers.compactMap(\.database)).sorted()
    warnings += ProductionChecks.warnings(ofEnvironment: settings, secrets: secrets)
    if !queues.isEmpty {
      warnings.append(
        Warning(
          text:
            "Tasks that a function adds to a queue name Cloud Functions' address; each queue here "
            + "replaces it by its service's address, which needs nothing of the functions."
        )
      )
    }
  }

  private mutating func add(_ function: String, _ endpoint: FunctionEndpoint, as name: String) {
    warnings += ProductionChecks.warnings(of: function, endpoint, settings: settings)
    if let trigger = endpoint.eventTrigger, Trigger.Kind(eventType: trigger.eventType) == nil {
      return
    }
    let isRequested =
      endpoint.callableTrigger != nil || endpoint.httpsTrigger != nil
    // What sends the events of a function in several regions would run it once in each.
    let regions = isRequested ? endpoint.regions : [endpoint.regions[0]]
    for (index, region) in regions.enumerated() {
      let service = service(
        function,
        endpoint,
        name: name,
        region: region,
        label: index == 0 ? name : "\(name)_in_\(region)"
      )
      services.append(service)
      guard index == 0 else { continue }
      if let trigger = endpoint.eventTrigger { add(trigger, of: service) }
      if let trigger = endpoint.scheduleTrigger { jobs.append(Job(trigger, of: service)) }
      if let trigger = endpoint.taskQueueTrigger { queues.append(Queue(trigger, of: service)) }
      if let trigger = endpoint.blockingTrigger {
        let event = trigger.eventType.split(separator: ".").last.map(String.init) ?? ""
        blocking.append(Blocking(service: service, event: event))
      }
    }
  }

  private func service(
    _ function: String,
    _ endpoint: FunctionEndpoint,
    name: String,
    region: String,
    label: String
  ) -> Service {
    let memory = endpoint.availableMemoryMb ?? Self.memoryDefault
    let cpu = CPUChoice(memoryMebibytes: memory, wanted: settings.cpu)
    let concurrency = endpoint.concurrency ?? FunctionEndpoint.concurrencyDefault
    let timeout = min(
      endpoint.timeoutSeconds ?? FunctionLimits.secondsDefault,
      endpoint.timeoutSecondsMax
    )
    let secrets = Set((endpoint.secretEnvironmentVariables ?? []).map(\.key)).sorted()
    return Service(
      function: function,
      name: name,
      region: region,
      label: label,
      memoryMebibytes: memory,
      cpu: cpu.text,
      timeoutSeconds: timeout,
      concurrency: cpu.isFraction ? 1 : concurrency,
      minInstances: endpoint.minInstances,
      maxInstances: endpoint.maxInstances,
      secrets: secrets,
      environment: environment(of: function, endpoint, timeout: timeout),
      isPublic: endpoint.callableTrigger != nil || endpoint.httpsTrigger != nil
        || endpoint.blockingTrigger != nil,
      needsFirstGeneration: cpu.isFraction || memory < Self.secondGenerationMemory
    )
  }

  private func environment(
    of function: String,
    _ endpoint: FunctionEndpoint,
    timeout: Int
  ) -> [Variable] {
    let own = [
      Variable(name: "FUNCTION_TARGET", value: function),
      Variable(
        name: "FUNCTION_SIGNATURE_TYPE",
        value: endpoint.eventTrigger == nil ? "http" : "cloudevent"
      ),
      Variable(name: "CLOUD_RUN_TIMEOUT_SECONDS", value: "\(timeout)"),
      Variable(name: "GCLOUD_PROJECT", value: nil),
    ]
    let authors = settings.environment
      .filter { !ProductionChecks.variablesOfPlan.contains($0.key) }
      .map { Variable(name: $0.key, value: $0.value) }
    return own + authors.sorted { $0.name < $1.name }
  }

  private mutating func add(_ trigger: FunctionEndpoint.EventTrigger, of service: Service) {
    guard let kind = Trigger.Kind(eventType: trigger.eventType) else { return }
    func sorted(_ filters: [String: String]) -> [Filter] {
      filters.map { Filter(name: $0.key, value: $0.value) }.sorted { $0.name < $1.name }
    }
    let retry = trigger.retryConfig
    triggers.append(
      Trigger(
        service: service,
        kind: kind,
        eventType: trigger.eventType,
        filters: sorted(trigger.eventFilters),
        patterns: sorted(trigger.eventFilterPathPatterns ?? [:]),
        retries: trigger.retry,
        minDelaySeconds: Self.bounded(retry?.minBackoffSeconds, default: 10),
        maxDelaySeconds: Self.bounded(retry?.maxBackoffSeconds, default: Self.delaySecondsMax)
      )
    )
  }

  /// Returns a delay within the bounds of Pub/Sub, in whole seconds.
  private static func bounded(_ seconds: Double?, default standard: Int) -> Int {
    guard let seconds else { return standard }
    return Int(min(max(seconds, 0), Double(delaySecondsMax)).rounded())
  }

  /// The memory of a function that sets none; the same as Firebase's default.
  static let memoryDefault = 256
  /// The least memory in the second generation of Cloud Run's sandbox.
  private static let secondGenerationMemory = 512
  /// The longest delay between two attempts of Pub/Sub.
  private static let delaySecondsMax = 600
}

extension CloudPlan.Trigger.Kind {
  /// Creates the kind of an event type; nil if Eventarc does not send it.
  init?(eventType: String) {
    switch eventType {
    case _ where eventType.hasPrefix("google.cloud.firestore.document.v1."): self = .firestore
    case _ where eventType.hasPrefix("google.firebase.database.ref.v1."): self = .database
    case "google.cloud.pubsub.topic.v1.messagePublished": self = .topic
    case _ where eventType.hasPrefix("google.cloud.storage.object.v1."): self = .storage
    case "google.cloud.audit.log.v1.written": self = .audit
    default: return nil
    }
  }
}

extension CloudPlan.Trigger {
  /// The database whose documents the trigger follows; nil for other events.
  var database: String? {
    guard kind == .firestore else { return nil }
    return filters.first { $0.name == "database" }?.value ?? "(default)"
  }
}

extension CloudPlan.Job {
  /// Creates a job, with Cloud Scheduler's defaults where the function sets none.
  init(_ trigger: FunctionEndpoint.ScheduleTrigger, of service: CloudPlan.Service) {
    let retry = trigger.retryConfig
    self.init(
      service: service,
      schedule: trigger.schedule,
      timeZone: trigger.timeZone ?? "Etc/UTC",
      retryCount: retry?.retryCount ?? 0,
      maxRetrySeconds: retry?.maxRetrySeconds ?? 0,
      minBackoffSeconds: retry?.minBackoffSeconds ?? 5,
      maxBackoffSeconds: retry?.maxBackoffSeconds ?? 3600,
      maxDoublings: retry?.maxDoublings ?? 5
    )
  }
}

extension CloudPlan.Queue {
  /// Creates a queue, with Firebase's defaults where the function sets none.
  init(_ trigger: FunctionEndpoint.TaskQueueTrigger, of service: CloudPlan.Service) {
    let retry = trigger.retryConfig
    let seconds = retry?.maxRetrySeconds ?? 0
    self.init(
      service: service,
      maxConcurrentDispatches: trigger.rateLimits?.maxConcurrentDispatches
        ?? FunctionLimits.concurrentTasksDefault,
      maxDispatchesPerSecond: trigger.rateLimits?.maxDispatchesPerSecond
        ?? Double(FunctionLimits.tasksPerSecondMax),
      maxAttempts: retry?.maxAttempts ?? 3,
      maxRetrySeconds: seconds > 0 ? seconds : nil,
      minBackoffSeconds: retry?.minBackoffSeconds ?? 0.1,
      maxBackoffSeconds: retry?.maxBackoffSeconds ?? 3600,
      maxDoublings: retry?.maxDoublings ?? 16
    )
  }
}
