/// The scripts of a plan for a POSIX shell with `gcloud`.
struct GcloudScripts {
  let plan: CloudPlan

  var settings: ProductionSettings { plan.settings }

  /// Makes everything, or brings it up to date.
  var make: String {
    let setUp = [apis, repository, accounts, secrets, databases].joined(separator: "\n")
    let deploy = [indexes, rules, topics, services, triggers, jobs, queues]
      .filter { !$0.isEmpty }.joined(separator: "\n")
    return opening(
      "Makes what the functions need, or brings it up to date. It can be run again.",
      usage: """
        #   sh gcloud.sh setup     what the image and the secrets need
        #   sh image.sh            builds and pushes the image
        #   sh secrets.sh          asks for the values of the secrets
        #   sh gcloud.sh deploy    the functions and what calls them
        """
    ) + Self.functions + """

      set_up() {
      \(Self.indented(setUp))
      }

      deploy() {
      \(Self.indented(deploy))
        sh "$FOLDER/finish.sh"
      }

      case ${1:-all} in
      setup) set_up ;;
      deploy) deploy ;;
      all)
        set_up
        deploy
        ;;
      *)
        echo "usage: sh gcloud.sh [setup|deploy]" >&2
        exit 2
        ;;
      esac

      """
  }

  /// Makes what neither Terraform nor a plain command makes.
  var finish: String {
    var parts: [String] = []
    for trigger in plan.triggers {
      let location = place(of: trigger)
      parts.append(
        """
        # \(QuotedText.comment(trigger.service.function)): an attempt may take as long as the function's timeout.
        subscription=$(gcloud eventarc triggers describe \(trigger.service.name) --project="$PROJECT" \\
          --location=\(location) --format='value(transport.pubsub.subscription)')
        gcloud pubsub subscriptions update "$subscription" --project="$PROJECT" \\
          --ack-deadline=\(min(max(trigger.service.timeoutSeconds + 10, 10), 600)) \\
          --min-retry-delay=\(trigger.minDelaySeconds)s --max-retry-delay=\(trigger.maxDelaySeconds)s --quiet

        """
      )
    }
    if !plan.blocking.isEmpty { parts.append(blockingFunctions) }
    if parts.isEmpty { parts = ["echo \"Nothing is left to do.\"\n"] }
    return opening(
      "Does what Terraform cannot. gcloud.sh runs it; run it after `terraform apply` too.",
      usage: "#   sh finish.sh"
    ) + Self.functions + "\n" + parts.joined(separator: "\n")
  }

  /// The registration of the functions that Auth asks, which replaces an earlier one as a whole.
  var blockingFunctions: String {
    let addresses = plan.blocking.map { blocking in
      """
      \(blocking.event)=$(gcloud run services describe \(blocking.service.name) --project="$PROJECT" \\
        --region=\(place(of: blocking.service)) --format='value(status.url)')
      """
    }
    let triggers = plan.blocking.map { blocking in
      #"\"\#(blocking.event)\":{\"functionUri\":\"$\#(blocking.event)\"}"#
    }
    let names = plan.blocking.map { QuotedText.comment($0.service.function) }
    return """
      # Auth asks \(names.joined(separator: " and ")), in a project with Identity Platform.
      \(addresses.joined(separator: "\n"))
      rest PATCH "\(Self.authConfiguration)" \\
        "{\\"blockingFunctions\\":{\\"triggers\\":{\(triggers.joined(separator: ","))}}}" >/dev/null

      """
  }

  static let authConfiguration =
    "https://identitytoolkit.googleapis.com/admin/v2/projects/$PROJECT/config"
    + "?updateMask=blockingFunctions"

  /// Builds and pushes the image.
  var image: String {
    let product = settings.product.map { "--build-arg PRODUCT=\(word($0)) " } ?? ""
    return opening(
      "Builds the image of the functions for Cloud Run's machines, and pushes it.",
      usage: "#   TAG=v2 sh image.sh"
    ) + """
      gcloud auth configure-docker "$REGION-docker.pkg.dev" --quiet
      docker build --platform=linux/amd64 -f "$FOLDER/"\(word(settings.dockerfilePath)) \\
        \(product)-t "$IMAGE" "$FOLDER/"\(word(settings.sourcePath))
      docker push "$IMAGE"

      """
  }

  /// Asks for the values of the secrets.
  var secretValues: String {
    let lines = plan.secrets.map { "ask \($0)" }
    return opening(
      "Asks for the value of each secret, without showing it; an empty answer skips the secret.",
      usage: """
        #   sh secrets.sh
        #
        # For a value of several lines: gcloud secrets versions add NAME --data-file=FILE
        """
    ) + """
      ask() {
        printf '%s: ' "$1" >&2
        if [ -t 0 ]; then stty -echo; fi
        IFS= read -r value || true
        if [ -t 0 ]; then stty echo; fi
        echo >&2
        if [ -n "$value" ]; then
          printf '%s' "$value" |
            gcloud secrets versions add "$1" --project="$PROJECT" --data-file=- --quiet
        fi
      }

      trap 'if [ -t 0 ]; then stty echo; fi' EXIT INT TERM

      """ + (lines.isEmpty ? "echo \"The functions declare no secrets.\"\n" : "")
      + lines.map { $0 + "\n" }.joined()
  }

  // MARK: - Set up

  var apis: String {
    """
    # The APIs.
    gcloud services enable \(plan.apis.joined(separator: " \\\n  ")) \\
      --project="$PROJECT" --quiet

    """
  }

  var repository: String {
    """
    # The repository of the image.
    gcloud artifacts repositories describe \(CloudPlan.Names.repository) --project="$PROJECT" \\
      --location="$REGION" >/dev/null 2>&1 ||
      gcloud artifacts repositories create \(CloudPlan.Names.repository) --project="$PROJECT" \\
        --location="$REGION" --repository-format=docker --quiet

    """
  }

  var accountNames: [String] {
    [CloudPlan.Names.runtime] + (plan.needsInvoker ? [CloudPlan.Names.invoker] : [])
  }

  var rolesOfProject: [(String, String)] {
    [(CloudPlan.Names.runtime, "roles/datastore.user")]
      + (plan.triggers.isEmpty
        ? [] : [(CloudPlan.Names.invoker, "roles/eventarc.eventReceiver")])
  }

  var accounts: String {
    var text = "# The accounts, with no more rights than they need.\n"
    for account in accountNames {
      text += """
        gcloud iam service-accounts describe "\(account)@$PROJECT.iam.gserviceaccount.com" \\
          --project="$PROJECT" >/dev/null 2>&1 ||
          gcloud iam service-accounts create \(account) --project="$PROJECT" --quiet

        """
    }
    for (account, role) in rolesOfProject {
      text += """
        gcloud projects add-iam-policy-binding "$PROJECT" --condition=None --role=\(role) \\
          --member="serviceAccount:\(account)@$PROJECT.iam.gserviceaccount.com" --quiet >/dev/null

        """
    }
    text += """
      for role in ${RUNTIME_ROLES:-}; do
        gcloud projects add-iam-policy-binding "$PROJECT" --condition=None --role="$role" \\
          --member="serviceAccount:$RUNTIME" --quiet >/dev/null
      done

      """
    if plan.triggers.contains(where: { $0.kind == .storage }) {
      text += """
        # Cloud Storage publishes its events as its own account.
        storage=$(gcloud storage service-agent --project="$PROJECT")
        gcloud projects add-iam-policy-binding "$PROJECT" --condition=None \\
          --role=roles/pubsub.publisher --member="serviceAccount:$storage" --quiet >/dev/null

        """
    }
    if !plan.queues.isEmpty {
      text += """
        # A task names the account that adds it, and that account has to be allowed to name itself.
        gcloud iam service-accounts add-iam-policy-binding "$RUNTIME" --project="$PROJECT" \\
          --role=roles/iam.serviceAccountUser --member="serviceAccount:$RUNTIME" --quiet >/dev/null

        """
    }
    return text
  }

  var secrets: String {
    plan.secrets.isEmpty
      ? ""
      : "# The secrets without their values, which secrets.sh adds.\n"
        + plan.secrets.map { name in
          """
          gcloud secrets describe \(name) --project="$PROJECT" >/dev/null 2>&1 ||
            gcloud secrets create \(name) --project="$PROJECT" --replication-policy=automatic --quiet
          gcloud secrets add-iam-policy-binding \(name) --project="$PROJECT" --condition=None \\
            --role=roles/secretmanager.secretAccessor --member="serviceAccount:$RUNTIME" --quiet >/dev/null

          """
        }.joined()
  }

  var databases: String {
    "# Firestore. Its location cannot be changed later.\n"
      + plan.databases.map { name in
        """
        gcloud firestore databases describe --database=\(word(name)) --project="$PROJECT" >/dev/null 2>&1 ||
          gcloud firestore databases create --database=\(word(name)) --project="$PROJECT" \\
            --location="$FIRESTORE_LOCATION" --type=firestore-native --quiet

        """
      }.joined()
  }

  // MARK: - Parts of a script

  func opening(_ words: String, usage: String) -> String {
    let project = settings.project.map { "${PROJECT:-\(Self.inBraces($0))}" }
    return "#!/bin/sh\n" + ProductionFiles.header("#") + """
      # \(words)
      #
      \(usage)
      #
      # PROJECT, REGION, FIRESTORE_LOCATION, TAG, IMAGE and RUNTIME_ROLES in the environment replace
      # the values below.

      set -eu
      FOLDER=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
      PROJECT=\(project ?? "${PROJECT:?Set PROJECT to the ID of the Google project.}")
      REGION=${REGION:-\(Self.inBraces(settings.region))}
      FIRESTORE_LOCATION=${FIRESTORE_LOCATION:-\(Self.inBraces(settings.firestoreLocation))}
      IMAGE=${IMAGE:-$REGION-docker.pkg.dev/$PROJECT/\(CloudPlan.Names.repository)/\(CloudPlan.Names.image):${TAG:-v1}}
      RUNTIME=\(CloudPlan.Names.runtime)@$PROJECT.iam.gserviceaccount.com
      INVOKER=\(CloudPlan.Names.invoker)@$PROJECT.iam.gserviceaccount.com
      export PROJECT REGION FIRESTORE_LOCATION IMAGE


      """
  }

  /// The functions of a script; each script uses some of them.
  static let functions = """
    # Sends a request to one of Google's APIs that gcloud has no command for.
    rest() {
      printf 'Authorization: Bearer %s\\n' "$(gcloud auth print-access-token)" |
        curl --fail-with-body --silent --show-error --request "$1" --header @- \\
          --header "Content-Type: application/json" --header "X-Goog-User-Project: $PROJECT" \\
          --data "$3" "$2"
    }

    # Runs a command whose resource may exist already.
    unless_exists() {
      if ! output=$("$@" 2>&1); then
        case $output in
        *ALREADY_EXISTS* | *"already exists"*) ;;
        *)
          printf '%s\\n' "$output" >&2
          return 1
          ;;
        esac
      fi
    }

    """

  func word(_ text: String) -> String { QuotedText.shell(text) }

  func place(of service: CloudPlan.Service) -> String {
    service.region == settings.region ? "\"$REGION\"" : word(service.region)
  }

  func place(of trigger: CloudPlan.Trigger) -> String {
    trigger.kind == .firestore ? "\"$FIRESTORE_LOCATION\"" : place(of: trigger.service)
  }

  /// Returns a name of the API as gcloud writes it: `COLLECTION_GROUP` as `collection-group`.
  static func flag(_ name: String) -> String {
    String(name.lowercased().map { $0 == "_" ? "-" : $0 })
  }

  /// Returns a text for the default of a variable, which needs no quotes when it is a plain word.
  static func inBraces(_ text: String) -> String { QuotedText.shell(text) }

  /// Returns the lines with two more spaces, but those that begin inside a quoted text.
  static func indented(_ text: String) -> String {
    var isQuoted = false
    return text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      let beginsQuoted = isQuoted
      let isComment = !isQuoted && line.utf8.first { $0 != UInt8(ascii: " ") } == UInt8(ascii: "#")
      var isEscaped = false
      for byte in line.utf8 where !isComment {
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\"), !isQuoted {
          isEscaped = true
        } else if byte == UInt8(ascii: "'") {
          isQuoted.toggle()
        }
      }
      return beginsQuoted || line.isEmpty ? String(line) : "  " + line
    }.joined(separator: "\n")
  }
}
