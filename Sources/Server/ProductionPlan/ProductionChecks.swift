import Manifests

/// What the emulator accepts and production does not, or does in another way.
enum ProductionChecks {
  /// The variables that Cloud Run sets itself.
  static let variablesOfCloudRun: Set<String> = [
    "PORT", "K_SERVICE", "K_REVISION", "K_CONFIGURATION",
  ]

  /// The variables that the plan sets for each function.
  static let variablesOfPlan: Set<String> = [
    "FUNCTION_TARGET", "FUNCTION_SIGNATURE_TYPE", "CLOUD_RUN_TIMEOUT_SECONDS", "GCLOUD_PROJECT",
  ]
  /// The beginning of the names that Cloud Run refuses.
  private static let prefixOfGoogle = "X_GOOGLE_"

  /// Returns the reasons why a function cannot be planned.
  static func problems(of function: String, _ endpoint: FunctionEndpoint) -> [String] {
    let taken = variablesOfPlan.union(variablesOfCloudRun)
    let secrets = Set((endpoint.secretEnvironmentVariables ?? []).map(\.key)).sorted()
    var problems = secrets.filter { taken.contains($0) || $0.hasPrefix(prefixOfGoogle) }.map {
      "\(function) has the secret \($0), which is the name of a variable that Cloud Run or this "
        + "command sets; give the secret another name."
    }
    if let trigger = endpoint.eventTrigger,
      CloudPlan.Trigger.Kind(eventType: trigger.eventType) == .topic,
      let topic = trigger.eventFilters["topic"], !isTopic(topic)
    {
      problems.append(
        "\(function) has the topic \(topic.debugDescription), which Pub/Sub does not allow; use a "
          + "letter, then letters, digits and -_.~+%."
      )
    }
    return problems
  }

  private static func isTopic(_ text: String) -> Bool {
    func isLetter(_ byte: UInt8) -> Bool {
      (65...90).contains(byte) || (97...122).contains(byte)
    }
    return text.utf8.first.map(isLetter) == true
      && text.utf8.allSatisfy {
        isLetter($0) || (48...57).contains($0) || "-_.~+%/".utf8.contains($0)
      }
  }

  /// Returns the warnings about one function.
  static func warnings(
    of function: String,
    _ endpoint: FunctionEndpoint,
    settings: ProductionSettings
  ) -> [CloudPlan.Warning] {
    (resources(endpoint, settings) + places(function, endpoint) + events(endpoint)
      + schedules(endpoint) + queues(function, endpoint) + blocking(endpoint))
      .map { CloudPlan.Warning(function: function, text: $0) }
  }

  /// Returns the warnings about the variables of all functions.
  static func warnings(
    ofEnvironment settings: ProductionSettings,
    secrets: [String]
  ) -> [CloudPlan.Warning] {
    settings.environment.keys.sorted().compactMap { name in
      if variablesOfCloudRun.contains(name) {
        return .init(text: "\(name) is set by Cloud Run; the value in .env is not written.")
      }
      guard secrets.contains(name) else { return nil }
      return .init(
        text: "\(name) is a secret of a function and also in .env; functions that declare it get "
          + "the secret. Remove it from .env."
      )
    }
  }

  private static func resources(
    _ endpoint: FunctionEndpoint,
    _ settings: ProductionSettings
  ) -> [String] {
    var warnings: [String] = []
    let memory = endpoint.availableMemoryMb ?? CloudPlan.memoryDefault
    let cpu = CPUChoice(memoryMebibytes: memory, wanted: settings.cpu)
    if let problem = cpu.problem { warnings.append(problem) }
    if cpu.isFraction {
      let concurrency = endpoint.concurrency ?? FunctionEndpoint.concurrencyDefault
      if concurrency > 1 {
        warnings.append(
          "with less than 1 CPU an instance runs one invocation at a time; its concurrency of "
            + "\(concurrency) becomes 1. Give --cpu 1, or set concurrency to 1."
        )
      }
    }
    if let seconds = endpoint.timeoutSeconds, seconds > endpoint.timeoutSecondsMax {
      warnings.append(
        "its timeout of \(seconds) s is over the \(endpoint.timeoutSecondsMax) s of its trigger, and "
          + "becomes that; lower it."
      )
    }
    return warnings
  }

  private static func places(_ function: String, _ endpoint: FunctionEndpoint) -> [String] {
    var warnings = endpoint.regions.filter { !Regions.ofCloudRun.contains($0) }.map {
      "\($0) is not a region of Cloud Run that this version knows; see "
        + "`gcloud run regions list`, or correct it."
    }
    let isRequested = endpoint.callableTrigger != nil || endpoint.httpsTrigger != nil
    if endpoint.regions.count > 1, !isRequested {
      warnings.append(
        "it has \(endpoint.regions.count) regions and would run once in each; only "
          + "\(endpoint.regions[0]) is generated. Keep one region."
      )
    }
    if endpoint.scheduleTrigger != nil || endpoint.taskQueueTrigger != nil,
      let region = endpoint.regions.first, Regions.ofCloudRun.contains(region),
      !Regions.ofScheduler.contains(region)
    {
      let (service, command) =
        endpoint.scheduleTrigger != nil
        ? ("Cloud Scheduler", "scheduler") : ("Cloud Tasks", "tasks")
      warnings.append(
        "\(service) may not be in \(region); see `gcloud \(command) locations list`, or move the "
          + "function, for example to us-central1."
      )
    }
    return warnings
  }

  private static func events(_ endpoint: FunctionEndpoint) -> [String] {
    guard let trigger = endpoint.eventTrigger else { return [] }
    guard let kind = CloudPlan.Trigger.Kind(eventType: trigger.eventType) else {
      return [notGenerated(trigger.eventType)]
    }
    var warnings: [String] = []
    if kind == .topic, trigger.eventFilters["topic"] == nil {
      warnings.append("its events need the filter topic; add it.")
    }
    if kind == .storage {
      warnings.append(
        "its trigger must be in the location of the bucket; it is generated in the function's region."
      )
    }
    if kind == .database {
      warnings.append(
        "its trigger must be in the location of the database's instance; it is generated in the "
          + "function's region. An instance at firebaseio.com is in us-central1."
      )
    }
    if let retry = trigger.retryConfig, trigger.retry {
      if let attempts = retry.maxAttempts, attempts > 0 {
        warnings.append(
          "production retries for 24 hours, not \(attempts) times; Eventarc has no such bound. Give "
            + "up in the function, by the age of the event."
        )
      }
      if let delay = retry.maxBackoffSeconds, delay > 600 {
        warnings.append("the longest delay between attempts is 600 s, not \(Int(delay)).")
      }
    }
    return warnings
  }

  /// Returns why an event type is not generated, and what to do instead.
  private static func notGenerated(_ eventType: String) -> String {
    let text =
      if eventType == "*" {
        "it wants every event, and a trigger of Eventarc has one type. Name the type."
      } else if eventType.hasPrefix("google.firebase.auth.user.") {
        "Eventarc has no events of Auth, which only first-generation Cloud Functions get. Use "
          + "a function that Auth asks before the sign-up, a schedule that looks for such users, or "
          + "a small first-generation function that forwards the event."
      } else {
        "Eventarc has no event \(eventType.debugDescription) that this command knows. Publish it to "
          + "a topic and declare google.cloud.pubsub.topic.v1.messagePublished."
      }
    return "NOT GENERATED: " + text
  }

  private static func schedules(_ endpoint: FunctionEndpoint) -> [String] {
    guard let zone = endpoint.scheduleTrigger?.timeZone else { return [] }
    let isPlain = zone.contains("/") || ["UTC", "GMT"].contains(zone.uppercased())
    guard !isPlain || zone.hasPrefix("posix/") || zone.hasPrefix("right/") else { return [] }
    return [
      "the time zone \(zone) may be unknown to Cloud Scheduler; name a city, such as Europe/Berlin."
    ]
  }

  private static func queues(_ function: String, _ endpoint: FunctionEndpoint) -> [String] {
    guard endpoint.taskQueueTrigger != nil, function.contains("_") else { return [] }
    return [
      "the name of a Cloud Tasks queue has no underscore, so its queue is refused; rename the function."
    ]
  }

  private static func blocking(_ endpoint: FunctionEndpoint) -> [String] {
    guard endpoint.blockingTrigger != nil else { return [] }
    return [
      "Auth asks it only in a project with Identity Platform, which Firebase's console switches on; "
        + "finish.sh then registers it, and Terraform does not."
    ]
  }
}

/// The regions that this version knows; Google adds new ones.
enum Regions {
  static let ofScheduler: Set<String> = [
    "asia-east1", "asia-east2", "asia-northeast1", "asia-northeast2", "asia-northeast3",
    "asia-south1", "asia-southeast1", "asia-southeast2", "australia-southeast1",
    "europe-central2", "europe-west1", "europe-west2", "europe-west3", "europe-west6",
    "northamerica-northeast1", "southamerica-east1", "us-central1", "us-east1", "us-east4",
    "us-west1", "us-west2", "us-west3", "us-west4",
  ]

  static let ofCloudRun: Set<String> = ofScheduler.union([
    "africa-south1", "asia-south2", "asia-southeast3", "australia-southeast2", "europe-north1",
    "europe-north2", "europe-southwest1", "europe-west4", "europe-west8", "europe-west9",
    "europe-west10", "europe-west12", "me-central1", "me-central2", "me-west1",
    "northamerica-northeast2", "northamerica-south1", "southamerica-west1", "us-east5",
    "us-south1",
  ])
}
