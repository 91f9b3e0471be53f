/// The parts of `gcloud.sh` that follow the image: Firestore, services, and what calls them.
extension GcloudScripts {
  var indexes: String {
    let list = settings.indexes
    guard !(list.indexes.isEmpty && list.fieldOverrides.isEmpty) else { return "" }
    var text = "# The indexes, which are built in the background.\n"
    for index in list.indexes {
      let fields = index.fields.map { field in
        " \\\n  --field-config=" + word(fieldConfiguration(field))
      }.joined()
      text += """
        unless_exists gcloud firestore indexes composite create --project="$PROJECT" --async --quiet \\
          --collection-group=\(word(index.collectionGroup)) --query-scope=\(word(Self.flag(index.queryScope ?? "COLLECTION")))\(fields)

        """
    }
    for field in list.fieldOverrides {
      let names =
        "\(word(field.fieldPath)) --project=\"$PROJECT\" "
        + "--collection-group=\(word(field.collectionGroup)) --async --quiet"
      if let indexes = field.indexes { text += fieldIndexes(indexes, of: field, names) }
      if field.ttl == true {
        text += "gcloud firestore fields ttls update \(names) \\\n  --enable-ttl\n"
      }
    }
    return text
  }

  /// Returns the command that replaces the indexes of a field.
  func fieldIndexes(
    _ indexes: [FirestoreIndexes.FieldIndex],
    of field: FirestoreIndexes.FieldOverride,
    _ names: String
  ) -> String {
    let command = "gcloud firestore indexes fields update \(names)"
    guard !indexes.isEmpty else { return command + " \\\n  --disable-indexes\n" }
    guard indexes.contains(where: { ($0.queryScope ?? "COLLECTION") != "COLLECTION" }) else {
      let flags = indexes.map { index in
        let kind =
          index.arrayConfig.map { "array-config=\($0)" } ?? "order=\(index.order ?? "ASCENDING")"
        return " \\\n  --index=" + word(QuotedText.gcloudList([kind]))
      }
      return command + flags.joined() + "\n"
    }
    // gcloud has no flag for the scope of a field's index.
    let list = indexes.map { index in
      let kind =
        index.arrayConfig.map { "\"arrayConfig\":\(QuotedText.json($0))" }
        ?? "\"order\":\(QuotedText.json(index.order ?? "ASCENDING"))"
      return "{\"queryScope\":\(QuotedText.json(index.queryScope ?? "COLLECTION")),\"fields\":["
        + "{\"fieldPath\":\(QuotedText.json(field.fieldPath)),\(kind)}]}"
    }
    let group = QuotedText.pathPart(field.collectionGroup)
    let place = "collectionGroups/\(group)/fields/\(QuotedText.pathPart(field.fieldPath))"
    let body = "{\"indexConfig\":{\"indexes\":[\(list.joined(separator: ","))]}}"
    return """
      rest PATCH "https://firestore.googleapis.com/v1/projects/$PROJECT/databases/(default)/\(place)?updateMask=indexConfig" \\
        \(word(body)) >/dev/null

      """
  }

  /// Returns the configuration of a field as JSON, which needs no separator of its own.
  func fieldConfiguration(_ field: FirestoreIndexes.Field) -> String {
    let path = "\"field-path\":\(QuotedText.json(field.fieldPath))"
    if let vector = field.vectorConfig {
      return "{\(path),\"vector-config\":{\"dimension\":\(vector.dimension),\"flat\":{}}}"
    }
    if let array = field.arrayConfig {
      return "{\(path),\"array-config\":\(QuotedText.json(Self.flag(array)))}"
    }
    return "{\(path),\"order\":\(QuotedText.json(Self.flag(field.order ?? "ASCENDING")))}"
  }

  var rules: String {
    guard settings.rules != nil else { return "" }
    return """
      # Firestore's rules: a new ruleset, then its release.
      ruleset=$(rest POST "https://firebaserules.googleapis.com/v1/projects/$PROJECT/rulesets" \\
        "@$FOLDER/firestore.rules.json" |
        sed -n 's/^ *"name": "\\(projects[^"]*rulesets[^"]*\\)".*/\\1/p')
      [ -n "$ruleset" ] || exit 1
      release="projects/$PROJECT/releases/cloud.firestore"
      rest PATCH "https://firebaserules.googleapis.com/v1/$release" \\
        "{\\"release\\":{\\"name\\":\\"$release\\",\\"rulesetName\\":\\"$ruleset\\"}}" ||
        rest POST "https://firebaserules.googleapis.com/v1/projects/$PROJECT/releases" \\
          "{\\"name\\":\\"$release\\",\\"rulesetName\\":\\"$ruleset\\"}"

      """
  }

  var topics: String {
    plan.topics.map { topic in
      """
      gcloud pubsub topics describe \(word(topic)) --project="$PROJECT" >/dev/null 2>&1 ||
        gcloud pubsub topics create \(word(topic)) --project="$PROJECT" --quiet

      """
    }.joined()
  }

  var services: String {
    plan.services.map { service in
      let variables = service.environment.compactMap { variable in
        variable.value.map { "\(variable.name)=" + QuotedText.withoutExpansion($0) }
      }
      let separator = QuotedText.gcloudSeparator(of: variables)
      let mark = separator == "," ? "" : "^\(separator)^"
      // The project comes first: it is the only value that the shell replaces.
      let environment =
        "\"\(mark)GCLOUD_PROJECT=$PROJECT\(separator)\""
        + word(variables.joined(separator: separator))
      let secrets =
        service.secrets.isEmpty
        ? "--clear-secrets"
        : "--set-secrets=" + service.secrets.map { "\($0)=\($0):latest" }.joined(separator: ",")
      let region = place(of: service)
      let sandbox = service.needsFirstGeneration ? "gen1" : "gen2"
      let ingress = service.isPublic ? "all" : "internal"
      let member =
        service.isPublic ? "allUsers" : "\"serviceAccount:$INVOKER\""
      return """
        # The function \(QuotedText.comment(service.function)).
        gcloud run deploy \(service.name) --project="$PROJECT" --region=\(region) --image="$IMAGE" \\
          --service-account="$RUNTIME" --memory=\(service.memoryMebibytes)Mi --cpu=\(service.cpu) \\
          --timeout=\(service.timeoutSeconds) --concurrency=\(service.concurrency) \\
          --min-instances=\(service.minInstances.map(String.init) ?? "default") \\
          --max-instances=\(service.maxInstances.map(String.init) ?? "default") \\
          --execution-environment=\(sandbox) --ingress=\(ingress) --no-allow-unauthenticated \\
          \(secrets) \\
          --set-env-vars=\(environment) --quiet
        gcloud run services add-iam-policy-binding \(service.name) --project="$PROJECT" --region=\(region) \\
          --role=roles/run.invoker --member=\(member) --quiet >/dev/null

        """
    }.joined(separator: "\n")
  }

  var triggers: String {
    plan.triggers.map { trigger in
      let service = trigger.service
      let location = place(of: trigger)
      var flags = [
        "--event-filters=" + word(QuotedText.gcloudList(["type=\(trigger.eventType)"]))
      ]
      // Eventarc takes the topic as the transport and not as a filter.
      flags += trigger.filters.filter { _ in trigger.kind != .topic }
        .map { "--event-filters=" + word(QuotedText.gcloudList(["\($0.name)=\($0.value)"])) }
      flags += trigger.patterns.map {
        "--event-filters-path-pattern=" + word(QuotedText.gcloudList(["\($0.name)=\($0.value)"]))
      }
      if trigger.kind == .firestore {
        flags.append("--event-data-content-type=application/protobuf")
      }
      flags += [
        "--destination-run-service=\(service.name)",
        "--destination-run-region=\(place(of: service))", "--service-account=\"$INVOKER\"",
      ]
      let list = flags.joined(separator: " \\\n    ")
      let transport = trigger.topic.map { " \\\n    --transport-topic=\(word($0))" } ?? ""
      let names = "\(service.name) --project=\"$PROJECT\" --location=\(location)"
      let attempts =
        trigger.retries
        ? ""
        : """
        # A failed event is not sent again.
        rest PATCH "https://eventarc.googleapis.com/v1/projects/$PROJECT/locations/"\(location)"/triggers/\(service.name)?updateMask=retryPolicy" \\
          '{"retryPolicy":{"maxAttempts":1}}' >/dev/null

        """
      return """
        # The events of \(QuotedText.comment(service.function)).
        if gcloud eventarc triggers describe \(names) >/dev/null 2>&1; then
          gcloud eventarc triggers update \(names) --quiet \\
            \(list)
        else
          gcloud eventarc triggers create \(names) --quiet \\
            \(list)\(transport)
        fi

        """ + attempts
    }.joined(separator: "\n")
  }

  var jobs: String {
    plan.jobs.map { job in
      let service = job.service
      let names = "\(service.function) --project=\"$PROJECT\" --location=\(place(of: service))"
      let flags = """
        --schedule=\(word(job.schedule)) --time-zone=\(word(job.timeZone)) \\
            --uri="$url/" --http-method=post --attempt-deadline=\(job.attemptSeconds)s \\
            --oidc-service-account-email="$INVOKER" --oidc-token-audience="$url" \\
            --max-retry-attempts=\(job.retryCount) --max-retry-duration=\(QuotedText.seconds(job.maxRetrySeconds)) \\
            --min-backoff=\(QuotedText.seconds(job.minBackoffSeconds)) --max-backoff=\(QuotedText.seconds(job.maxBackoffSeconds)) \\
            --max-doublings=\(job.maxDoublings) --quiet
        """
      return """
        # The schedule of \(QuotedText.comment(service.function)).
        \(address(of: service))
        if gcloud scheduler jobs describe \(names) >/dev/null 2>&1; then
          gcloud scheduler jobs update http \(names) \\
            \(flags)
        else
          gcloud scheduler jobs create http \(names) \\
            \(flags)
        fi

        """
    }.joined(separator: "\n")
  }

  var queues: String {
    plan.queues.map { queue in
      let service = queue.service
      let region = place(of: service)
      let names = "\(service.function) --project=\"$PROJECT\" --location=\(region)"
      let attempts = queue.maxAttempts < 0 ? "unlimited" : "\(queue.maxAttempts)"
      let flags = """
        --max-attempts=\(attempts) --max-retry-duration=\(QuotedText.seconds(queue.maxRetrySeconds ?? 0)) \\
            --min-backoff=\(QuotedText.seconds(queue.minBackoffSeconds)) --max-backoff=\(QuotedText.seconds(queue.maxBackoffSeconds)) \\
            --max-doublings=\(queue.maxDoublings) --max-concurrent-dispatches=\(queue.maxConcurrentDispatches) \\
            --max-dispatches-per-second=\(QuotedText.number(queue.maxDispatchesPerSecond)) --http-method-override=post \\
            --http-uri-override="scheme:https,host:${url#https://},path:/,mode:ALWAYS" \\
            --http-oidc-service-account-email-override="$INVOKER" \\
            --http-oidc-token-audience-override="$url" --quiet
        """
      return """
        # The queue of \(QuotedText.comment(service.function)).
        \(address(of: service))
        if gcloud tasks queues describe \(names) >/dev/null 2>&1; then
          gcloud tasks queues update \(names) \\
            \(flags)
        else
          gcloud tasks queues create \(names) \\
            \(flags)
        fi
        gcloud tasks queues add-iam-policy-binding \(names) \\
          --role=roles/cloudtasks.enqueuer --member="serviceAccount:$RUNTIME" --quiet >/dev/null

        """
    }.joined(separator: "\n")
  }

  func address(of service: CloudPlan.Service) -> String {
    """
    url=$(gcloud run services describe \(service.name) --project="$PROJECT" \\
      --region=\(place(of: service)) --format='value(status.url)')
    """
  }
}
