/// The script `gcloud-delete.sh`.
extension GcloudScripts {
  /// Removes everything that `make` made.
  ///
  /// `make` takes over a repository, secrets and topics that were there before, so this script asks
  /// before it deletes them.
  var delete: String {
    var lines: [String] = []
    for queue in plan.queues.reversed() {
      lines.append(
        "gone gcloud tasks queues delete \(queue.service.function) --project=\"$PROJECT\" "
          + "--location=\(place(of: queue.service)) --quiet"
      )
    }
    for job in plan.jobs.reversed() {
      lines.append(
        "gone gcloud scheduler jobs delete \(job.service.function) --project=\"$PROJECT\" "
          + "--location=\(place(of: job.service)) --quiet"
      )
    }
    for trigger in plan.triggers.reversed() {
      lines.append(
        "gone gcloud eventarc triggers delete \(trigger.service.name) --project=\"$PROJECT\" "
          + "--location=\(place(of: trigger)) --quiet"
      )
    }
    if !plan.blocking.isEmpty {
      lines.append(
        "rest PATCH \"\(Self.authConfiguration)\" '{}' >/dev/null ||\n"
          + "  echo \"Auth still asks its functions, unless it has no Identity Platform.\" >&2"
      )
    }
    for service in plan.services.reversed() {
      lines.append(
        "gone gcloud run services delete \(service.name) --project=\"$PROJECT\" "
          + "--region=\(place(of: service)) --quiet"
      )
    }
    lines += Self.ifConfirmed(
      "topics",
      plan.topics.reversed().map {
        "gone gcloud pubsub topics delete \(word($0)) --project=\"$PROJECT\" --quiet"
      }
    )
    lines += Self.ifConfirmed(
      "secrets",
      plan.secrets.reversed().map {
        "gone gcloud secrets delete \($0) --project=\"$PROJECT\" --quiet"
      }
    )
    lines += rolesOfProject.map { account, role in
      "gone gcloud projects remove-iam-policy-binding \"$PROJECT\" --condition=None "
        + "--role=\(role) --member=\"serviceAccount:\(account)@$PROJECT.iam.gserviceaccount.com\" --quiet"
    }
    lines.append(
      """
      for role in ${RUNTIME_ROLES:-}; do
        gone gcloud projects remove-iam-policy-binding "$PROJECT" --condition=None --role="$role" --member="serviceAccount:$RUNTIME" --quiet
      done
      """
    )
    for account in accountNames.reversed() {
      lines.append(
        "gone gcloud iam service-accounts delete "
          + "\"\(account)@$PROJECT.iam.gserviceaccount.com\" --project=\"$PROJECT\" --quiet"
      )
    }
    lines += Self.ifConfirmed(
      "repository",
      [
        "gone gcloud artifacts repositories delete \(CloudPlan.Names.repository) "
          + "--project=\"$PROJECT\" --location=\"$REGION\" --quiet"
      ]
    )
    let databases = plan.databases.map {
      "  gone gcloud firestore databases delete --database=\(word($0)) --project=\"$PROJECT\" --quiet"
    }
    return opening(
      "Removes what gcloud.sh made: functions, triggers, secrets, accounts and images.",
      usage: """
        #   sh gcloud-delete.sh                    keeps Firestore: documents, indexes and rules
        #   DELETE_DATA=yes sh gcloud-delete.sh    deletes the databases with all documents
        #
        #   HEARTH_YES=1 sh gcloud-delete.sh       answers every question with yes
        #
        # It says what it deletes, and asks before the repository, secrets and topics, which may have
        # been there before gcloud.sh. The APIs stay enabled. The name of a deleted queue cannot be
        # used again for some days.
        """
    ) + Self.functions + """

      # Runs a command whose resource may be gone already.
      gone() {
        if ! output=$("$@" 2>&1); then
          case $output in
          *NOT_FOUND* | *"not found"* | *"could not be found"* | *"cannot be found"*) ;;
          *"does not exist"*) ;;
          *)
            printf '%s\\n' "$output" >&2
            return 1
            ;;
          esac
        fi
      }

      # Asks a question; the answer is no unless it is y or yes.
      confirmed() {
        if [ "${HEARTH_YES:-}" = 1 ]; then return 0; fi
        printf '%s [y/N] ' "$1" >&2
        answer=
        read -r answer || true
        case $answer in
        [yY] | [yY][eE][sS]) ;;
        *)
          echo "Kept." >&2
          return 1
          ;;
        esac
      }

      \(announcement)
      \(questions)

      """ + lines.joined(separator: "\n") + """

        if [ "${DELETE_DATA:-no}" = yes ]; then
        \(databases.joined(separator: "\n"))
        fi

        """
  }

  /// The names of what the script deletes, which it prints first.
  private var announcement: String {
    var names: [String] = []
    func add(_ kind: String, _ name: String, in place: String) {
      names.append("'\(kind) '\(word(name))' in '\(place)")
    }
    for queue in plan.queues {
      add("the queue", queue.service.function, in: place(of: queue.service))
    }
    for job in plan.jobs { add("the job", job.service.function, in: place(of: job.service)) }
    for trigger in plan.triggers {
      add("the trigger", trigger.service.name, in: place(of: trigger))
    }
    for service in plan.services { add("the service", service.name, in: place(of: service)) }
    names += accountNames.map { "'the account '\($0)" }
    let asked =
      ["'the repository '\(CloudPlan.Names.repository)' in '\"$REGION\"', with all images'"]
      + plan.secrets.map { "'the secret '\($0)" } + plan.topics.map { "'the topic '\(word($0))" }
    return """
      echo "This script deletes in the project $PROJECT:" >&2
      printf '  %s\\n' \(names.joined(separator: " \\\n  ")) >&2
      echo "and, if you say so, what may have been there before gcloud.sh:" >&2
      printf '  %s\\n' \(asked.joined(separator: " \\\n  ")) >&2
      if [ "${DELETE_DATA:-no}" = yes ]; then
        echo "and the databases with all documents:" >&2
        printf '  %s\\n' \(plan.databases.map(word).joined(separator: " \\\n    ")) >&2
      fi

      """
  }

  /// The questions, all before anything is deleted.
  private var questions: String {
    func ask(_ variable: String, _ question: String) -> String {
      """
      \(variable)=no
      if confirmed \(question); then \(variable)=yes; fi

      """
    }
    let secrets = plan.secrets.joined(separator: ", ")
    let topics = plan.topics.joined(separator: ", ")
    return ask(
      "repository",
      "\"Delete the repository \(CloudPlan.Names.repository) in $REGION with all images?\""
    )
      + (secrets.isEmpty
        ? "" : ask("secrets", word("Delete the secrets \(secrets) with all values?")))
      + (topics.isEmpty
        ? "" : ask("topics", word("Delete the topics \(topics) for everyone who uses them?")))
  }

  /// Returns commands that run only if a question was answered with yes; none for no commands.
  private static func ifConfirmed(_ variable: String, _ commands: [String]) -> [String] {
    guard !commands.isEmpty else { return [] }
    return ["if [ \"$\(variable)\" = yes ]; then"] + commands.map { "  " + $0 } + ["fi"]
  }
}
