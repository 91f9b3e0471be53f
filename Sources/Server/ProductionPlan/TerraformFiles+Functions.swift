/// The services of the functions, and what calls them.
extension TerraformFiles {
  func topic(_ name: String, _ index: Int) -> HCLBlock {
    HCLBlock(
      "resource \"google_pubsub_topic\" \"topic_\(index)\"",
      [.attribute("name", hcl(name)), Self.afterAPIs]
    )
  }

  func service(_ service: CloudPlan.Service) -> [HCLBlock] {
    var scaling: [HCLBlock.Item] = []
    if let least = service.minInstances {
      scaling.append(.attribute("min_instance_count", "\(least)"))
    }
    if let most = service.maxInstances {
      scaling.append(.attribute("max_instance_count", "\(most)"))
    }
    let generation = service.needsFirstGeneration ? 1 : 2
    let template = HCLBlock(
      "template",
      [
        .attribute("service_account", "google_service_account.runtime.email"),
        .attribute("timeout", hcl("\(service.timeoutSeconds)s")),
        .attribute("max_instance_request_concurrency", "\(service.concurrency)"),
        .attribute("execution_environment", hcl("EXECUTION_ENVIRONMENT_GEN\(generation)")),
      ] + (scaling.isEmpty ? [] : [.block(HCLBlock("scaling", scaling))])
        + [.block(container(service))]
    )
    return [
      HCLBlock(
        "resource \"google_cloud_run_v2_service\" \"\(service.label)\"",
        [
          .attribute("name", hcl(service.name)), .attribute("location", region(service.region)),
          .attribute("description", hcl("The function \(service.function)")),
          .attribute(
            "ingress",
            hcl(service.isPublic ? "INGRESS_TRAFFIC_ALL" : "INGRESS_TRAFFIC_INTERNAL_ONLY")
          ),
          .attribute("deletion_protection", "false"), .block(template),
          .list(
            "depends_on",
            ["google_project_service.apis", "google_project_iam_member.runtime"]
              + service.secrets.map { "google_secret_manager_secret_iam_member.\($0)" }
          ),
        ]
      ),
      HCLBlock(
        "resource \"google_cloud_run_v2_service_iam_member\" \"\(service.label)\"",
        [
          .attribute("name", "google_cloud_run_v2_service.\(service.label).name"),
          .attribute("location", region(service.region)),
          .attribute("role", hcl("roles/run.invoker")),
          .attribute("member", service.isPublic ? hcl("allUsers") : Self.member("invoker")),
        ]
      ),
    ]
  }

  func container(_ service: CloudPlan.Service) -> HCLBlock {
    let variables = service.environment.map { variable -> HCLBlock.Item in
      let value = variable.value.map { hcl(QuotedText.withoutExpansion($0)) } ?? "var.project"
      return .block(
        HCLBlock("env", [.attribute("name", hcl(variable.name)), .attribute("value", value)])
      )
    }
    let secrets = service.secrets.map { name -> HCLBlock.Item in
      let reference = HCLBlock(
        "secret_key_ref",
        [
          .attribute("secret", "google_secret_manager_secret.\(name).secret_id"),
          .attribute("version", hcl("latest")),
        ]
      )
      return .block(
        HCLBlock(
          "env",
          [
            .attribute("name", hcl(name)),
            .block(HCLBlock("value_source", [.block(reference)])),
          ]
        )
      )
    }
    let resources = HCLBlock(
      "resources",
      [
        .attribute("cpu_idle", "true"),
        .map(
          "limits",
          [("cpu", hcl(service.cpu)), ("memory", hcl("\(service.memoryMebibytes)Mi"))]
        ),
      ]
    )
    return HCLBlock(
      "containers",
      [.attribute("image", "local.image"), .block(resources)] + variables + secrets
    )
  }

  func trigger(_ trigger: CloudPlan.Trigger) -> HCLBlock {
    let service = trigger.service
    func criteria(_ name: String, _ value: String, _ isPattern: Bool) -> HCLBlock.Item {
      .block(
        HCLBlock(
          "matching_criteria",
          [.attribute("attribute", hcl(name)), .attribute("value", hcl(value))]
            + (isPattern ? [.attribute("operator", hcl("match-path-pattern"))] : [])
        )
      )
    }
    var items: [HCLBlock.Item] = [
      .attribute("name", hcl(service.name)),
      .attribute(
        "location",
        trigger.kind == .firestore ? "var.firestore_location" : region(service.region)
      ),
      .attribute("service_account", "google_service_account.invoker.email"),
    ]
    if trigger.kind == .firestore {
      items.append(.attribute("event_data_content_type", hcl("application/protobuf")))
    }
    items.append(criteria("type", trigger.eventType, false))
    // Eventarc takes the topic as the transport and not as a filter.
    items += trigger.filters.filter { _ in trigger.kind != .topic }
      .map { criteria($0.name, $0.value, false) }
    items += trigger.patterns.map { criteria($0.name, $0.value, true) }
    let target = HCLBlock(
      "cloud_run_service",
      [
        .attribute("service", "google_cloud_run_v2_service.\(service.label).name"),
        .attribute("region", region(service.region)),
      ]
    )
    items.append(.block(HCLBlock("destination", [.block(target)])))
    if let topic = trigger.topic, let index = plan.topics.firstIndex(of: topic) {
      let pubsub = HCLBlock(
        "pubsub",
        [.attribute("topic", "google_pubsub_topic.topic_\(index).id")]
      )
      items.append(.block(HCLBlock("transport", [.block(pubsub)])))
    }
    if !trigger.retries {
      items.append(.block(HCLBlock("retry_policy", [.attribute("max_attempts", "1")])))
    }
    var conditions = [
      "google_project_iam_member.event_receiver",
      "google_cloud_run_v2_service_iam_member.\(service.label)",
    ]
    if let database = trigger.database, let index = plan.databases.firstIndex(of: database) {
      conditions.append("google_firestore_database.\(Self.databaseLabel(index))")
    }
    if trigger.kind == .storage { conditions.append("google_project_iam_member.storage_publisher") }
    items.append(.list("depends_on", conditions))
    return HCLBlock("resource \"google_eventarc_trigger\" \"\(service.label)\"", items)
  }

  func job(_ job: CloudPlan.Job) -> HCLBlock {
    let url = "google_cloud_run_v2_service.\(job.service.label).uri"
    let token = HCLBlock(
      "oidc_token",
      [
        .attribute("service_account_email", "google_service_account.invoker.email"),
        .attribute("audience", url),
      ]
    )
    return HCLBlock(
      "resource \"google_cloud_scheduler_job\" \"\(job.service.label)\"",
      [
        .attribute("name", hcl(job.service.function)),
        .attribute("region", region(job.service.region)),
        .attribute("schedule", hcl(job.schedule)), .attribute("time_zone", hcl(job.timeZone)),
        .attribute("attempt_deadline", hcl("\(job.attemptSeconds)s")),
        .block(
          HCLBlock(
            "retry_config",
            [
              .attribute("retry_count", "\(job.retryCount)"),
              .attribute("max_retry_duration", hcl(QuotedText.seconds(job.maxRetrySeconds))),
              .attribute("min_backoff_duration", hcl(QuotedText.seconds(job.minBackoffSeconds))),
              .attribute("max_backoff_duration", hcl(QuotedText.seconds(job.maxBackoffSeconds))),
              .attribute("max_doublings", "\(job.maxDoublings)"),
            ]
          )
        ),
        .block(
          HCLBlock(
            "http_target",
            [
              .attribute("http_method", hcl("POST")), .attribute("uri", "\"${\(url)}/\""),
              .block(token),
            ]
          )
        ),
        .list(
          "depends_on",
          [
            "google_project_service.apis",
            "google_cloud_run_v2_service_iam_member.\(job.service.label)",
          ]
        ),
      ]
    )
  }

  func queue(_ queue: CloudPlan.Queue) -> [HCLBlock] {
    let label = queue.service.label
    let url = "google_cloud_run_v2_service.\(label).uri"
    var retries: [HCLBlock.Item] = [
      .attribute("max_attempts", "\(queue.maxAttempts)"),
      .attribute("min_backoff", hcl(QuotedText.seconds(queue.minBackoffSeconds))),
      .attribute("max_backoff", hcl(QuotedText.seconds(queue.maxBackoffSeconds))),
      .attribute("max_doublings", "\(queue.maxDoublings)"),
    ]
    if let seconds = queue.maxRetrySeconds {
      retries.append(.attribute("max_retry_duration", hcl(QuotedText.seconds(seconds))))
    }
    let target = HCLBlock(
      "http_target",
      [
        .attribute("http_method", hcl("POST")),
        .block(
          HCLBlock(
            "uri_override",
            [
              .attribute("scheme", hcl("HTTPS")),
              .attribute("host", "trimprefix(\(url), \"https://\")"),
              .attribute("uri_override_enforce_mode", hcl("ALWAYS")),
              .block(HCLBlock("path_override", [.attribute("path", hcl("/"))])),
            ]
          )
        ),
        .block(
          HCLBlock(
            "oidc_token",
            [
              .attribute("service_account_email", "google_service_account.invoker.email"),
              .attribute("audience", url),
            ]
          )
        ),
      ]
    )
    return [
      HCLBlock(
        "resource \"google_cloud_tasks_queue\" \"\(label)\"",
        [
          .attribute("name", hcl(queue.service.function)),
          .attribute("location", region(queue.service.region)),
          .block(
            HCLBlock(
              "rate_limits",
              [
                .attribute("max_concurrent_dispatches", "\(queue.maxConcurrentDispatches)"),
                .attribute(
                  "max_dispatches_per_second",
                  QuotedText.number(queue.maxDispatchesPerSecond)
                ),
              ]
            )
          ),
          .block(HCLBlock("retry_config", retries)), .block(target),
          .list(
            "depends_on",
            [
              "google_project_service.apis", "google_cloud_run_v2_service_iam_member.\(label)",
            ]
          ),
        ]
      ),
      HCLBlock(
        "resource \"google_cloud_tasks_queue_iam_member\" \"\(label)\"",
        [
          .attribute("name", "google_cloud_tasks_queue.\(label).name"),
          .attribute("location", region(queue.service.region)),
          .attribute("role", hcl("roles/cloudtasks.enqueuer")),
          .attribute("member", Self.member("runtime")),
        ]
      ),
    ]
  }
}
