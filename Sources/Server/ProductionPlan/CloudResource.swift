import Manifests

/// One resource of a plan, in the form in which plans are stored and compared.
package struct CloudResource: Codable, Sendable, Hashable {
  /// The identity, such as `service us-central1/embedmessage`; equal in plans to compare.
  package var id: String
  /// The properties in words, by name.
  package var properties: [String: String]

  package init(_ id: String, _ properties: [String: String] = [:]) {
    self.id = id
    self.properties = properties
  }
}

extension CloudPlan {
  /// The resources of the plan, ordered by what depends on what.
  package var resources: [CloudResource] {
    apis.map { CloudResource("api \($0)") }
      + [
        CloudResource("repository \(settings.region)/\(Names.repository)"),
        CloudResource("account \(Names.runtime)", ["roles": runtimeRoles.joined(separator: ", ")]),
      ]
      + (needsInvoker
        ? [
          CloudResource(
            "account \(Names.invoker)",
            ["roles": "roles/run.invoker on private services"]
          )
        ]
        : [])
      + secrets.map { CloudResource("secret \($0)", ["readers": Names.runtime]) }
      + databases.map { CloudResource("database \($0)", ["location": settings.firestoreLocation]) }
      + (settings.rules.map { [CloudResource("rules cloud.firestore", ["text": Self.summary($0)])] }
        ?? [])
      + settings.indexes.indexes.map { index in
        let scope = index.queryScope ?? "COLLECTION"
        return CloudResource("index \(index.collectionGroup) (\(index.words)) \(scope)")
      }
      + settings.indexes.fieldOverrides.map { field in
        CloudResource("field \(field.collectionGroup).\(field.fieldPath)", ["indexes": field.words])
      }
      + topics.map { CloudResource("topic \($0)") }
      + services.map(\.resource) + triggers.map { $0.resource(in: settings) }
      + jobs.map(\.resource) + queues.map(\.resource)
      + blocking.map {
        CloudResource("Auth's \($0.event)", ["function": $0.service.function])
      }
  }

  /// The APIs to enable, sorted.
  package var apis: [String] {
    var names = [
      "artifactregistry", "cloudresourcemanager", "firestore", "iam", "logging", "run",
    ]
    if !secrets.isEmpty { names.append("secretmanager") }
    if settings.rules != nil { names.append("firebaserules") }
    if !triggers.isEmpty { names += ["eventarc", "eventarcpublishing", "pubsub"] }
    if triggers.contains(where: { $0.kind == .storage }) { names.append("storage") }
    if triggers.contains(where: { $0.kind == .database }) { names.append("firebasedatabase") }
    if !jobs.isEmpty { names.append("cloudscheduler") }
    if !queues.isEmpty { names.append("cloudtasks") }
    if !blocking.isEmpty { names.append("identitytoolkit") }
    return names.sorted().map { "\($0).googleapis.com" }
  }

  /// The roles of the runtime account in the project and on its queues and secrets.
  var runtimeRoles: [String] {
    ["roles/datastore.user"]
      + (secrets.isEmpty ? [] : ["roles/secretmanager.secretAccessor on its secrets"])
      + (queues.isEmpty ? [] : ["roles/cloudtasks.enqueuer on its queues"])
  }

  /// True if something but the app sends requests to a service.
  var needsInvoker: Bool { !triggers.isEmpty || !jobs.isEmpty || !queues.isEmpty }

  /// The names of what all functions share.
  enum Names {
    static let repository = "functions"
    static let image = "functions"
    static let runtime = "hearth-runtime"
    static let invoker = "hearth-invoker"
  }

  /// Returns a short text that differs when a long one does, for a person to see that it changed.
  static func summary(_ text: String) -> String {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).count
    return "\(lines) lines, \(ProductionRecord.hash(text.utf8))"
  }
}

extension CloudPlan.Service {
  var resource: CloudResource {
    func words(_ instances: Int?) -> String { instances.map { "\($0)" } ?? "Google's default" }
    var properties: [String: String] = [
      "function": function, "memory": "\(memoryMebibytes) MiB", "cpu": cpu,
      "timeout": "\(timeoutSeconds) s", "concurrency": "\(concurrency)",
      "minInstances": words(minInstances), "maxInstances": words(maxInstances),
      "callers": isPublic ? "everybody" : "the project's own triggers",
      "secrets": secrets.isEmpty ? "none" : secrets.joined(separator: ", "),
    ]
    for variable in environment {
      properties["environment \(variable.name)"] = variable.value ?? "the project"
    }
    return CloudResource("service \(region)/\(name)", properties)
  }
}

extension CloudPlan.Trigger {
  func resource(in settings: ProductionSettings) -> CloudResource {
    CloudResource(
      "trigger \(location(in: settings))/\(service.name)",
      [
        "event": eventType,
        "filters":
          (filters.map { "\($0.name)=\($0.value)" }
          + patterns.map { "\($0.name)~\($0.value)" }).joined(separator: ", "),
        "retries": retries ? "\(minDelaySeconds) to \(maxDelaySeconds) s apart, for 24 h" : "none",
        "service": "\(service.region)/\(service.name)",
      ]
    )
  }

  /// The location, which for documents is the one of the database.
  func location(in settings: ProductionSettings) -> String {
    kind == .firestore ? settings.firestoreLocation : service.region
  }
}

extension CloudPlan.Job {
  var resource: CloudResource {
    CloudResource(
      "job \(service.region)/\(service.function)",
      [
        "schedule": schedule, "time zone": timeZone, "retries": "\(retryCount)",
        "retry for": "\(maxRetrySeconds) s",
        "delays": "\(minBackoffSeconds) to \(maxBackoffSeconds) s, \(maxDoublings) doublings",
        "attempt deadline": "\(attemptSeconds) s",
      ]
    )
  }

  /// The time for one attempt, which Cloud Scheduler bounds by 15 seconds and 30 minutes.
  var attemptSeconds: Int {
    let allowed = FunctionLimits.attemptSeconds
    return min(max(service.timeoutSeconds, allowed.lowerBound), allowed.upperBound)
  }
}

extension CloudPlan.Queue {
  var resource: CloudResource {
    CloudResource(
      "queue \(service.region)/\(service.function)",
      [
        "concurrent dispatches": "\(maxConcurrentDispatches)",
        "dispatches per second": "\(maxDispatchesPerSecond)",
        "attempts": maxAttempts < 0 ? "unlimited" : "\(maxAttempts)",
        "retry for": maxRetrySeconds.map { "\($0) s" } ?? "unlimited",
        "delays": "\(minBackoffSeconds) to \(maxBackoffSeconds) s, \(maxDoublings) doublings",
      ]
    )
  }
}
