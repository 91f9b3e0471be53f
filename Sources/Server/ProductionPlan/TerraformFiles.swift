/// The files of a plan in Terraform's language, for the provider `hashicorp/google` 7.
struct TerraformFiles {
  let plan: CloudPlan

  var settings: ProductionSettings { plan.settings }

  /// The resources.
  var main: String {
    let blocks =
      [terraform, provider] + foundation + accounts + plan.secrets.flatMap(secret) + firestore
      + plan.topics.enumerated().map { topic($0.element, $0.offset) }
      + plan.services.flatMap(service) + plan.triggers.map(trigger) + plan.jobs.map(job)
      + plan.queues.flatMap(queue) + [ready, addresses]
    return ProductionFiles.header("#")
      + blocks.map { $0.text + "\n" }.joined(separator: "\n")
  }

  /// The variables, with the settings as their defaults.
  var variables: String {
    func variable(_ name: String, _ words: String, _ value: String?, type: String = "string")
      -> HCLBlock
    {
      HCLBlock(
        "variable \"\(name)\"",
        [
          .attribute("description", QuotedText.hcl(words)), .attribute("type", type),
        ] + (value.map { [.attribute("default", $0)] } ?? [])
      )
    }
    let blocks = [
      variable("project", "The ID of the Google project.", settings.project.map(QuotedText.hcl)),
      variable("region", "The region of the image and of most functions.", hcl(settings.region)),
      variable(
        "firestore_location",
        "The location of Firestore, such as nam5, eur3 or a region; it cannot be changed later.",
        hcl(settings.firestoreLocation)
      ),
      variable("tag", "The tag of the image; change it with each build.", hcl("v1")),
      variable(
        "image",
        "The image with its tag; empty for the tag in the repository that is made here.",
        hcl("")
      ),
      variable(
        "create_database",
        "False if the project has its Firestore database already.",
        "true",
        type: "bool"
      ),
      variable(
        "runtime_roles",
        "More roles of the functions in the project, such as roles/firebaseauth.admin.",
        "[]",
        type: "list(string)"
      ),
    ]
    return ProductionFiles.header("#") + blocks.map { $0.text + "\n" }.joined(separator: "\n")
  }

  /// An example of the values that a person sets.
  var example: String {
    ProductionFiles.header("#") + """
      # Copy this file to terraform.tfvars, which is never written by hearth.
      project            = \(hcl(settings.project ?? "my-project"))
      region             = \(hcl(settings.region))
      firestore_location = \(hcl(settings.firestoreLocation))
      tag                = "v1"
      runtime_roles      = []

      """
  }

  // MARK: - What all functions share

  var terraform: HCLBlock {
    HCLBlock(
      "terraform",
      [
        .attribute("required_version", hcl(">= 1.5")),
        .block(
          HCLBlock(
            "required_providers",
            [.map("google", [("source", hcl("hashicorp/google")), ("version", hcl("~> 7.0"))])]
          )
        ),
      ]
    )
  }

  var provider: HCLBlock {
    HCLBlock(
      "provider \"google\"",
      [.attribute("project", "var.project"), .attribute("region", "var.region")]
    )
  }

  var foundation: [HCLBlock] {
    let image = "${var.region}-docker.pkg.dev/${var.project}/\(CloudPlan.Names.repository)/"
    return [
      HCLBlock(
        "locals",
        [
          .attribute(
            "image",
            "var.image != \"\" ? var.image : \"\(image)\(CloudPlan.Names.image):${var.tag}\""
          )
        ]
      ),
      HCLBlock(
        "resource \"google_project_service\" \"apis\"",
        [
          .set("for_each", plan.apis.map(hcl)), .attribute("service", "each.value"),
          .attribute("disable_on_destroy", "false"),
        ]
      ),
      HCLBlock(
        "resource \"google_artifact_registry_repository\" \"functions\"",
        [
          .attribute("repository_id", hcl(CloudPlan.Names.repository)),
          .attribute("location", "var.region"), .attribute("format", hcl("DOCKER")), Self.afterAPIs,
        ]
      ),
    ]
  }

  var accounts: [HCLBlock] {
    var blocks = [
      account("runtime", CloudPlan.Names.runtime, "Runs the functions"),
      HCLBlock(
        "resource \"google_project_iam_member\" \"runtime\"",
        [
          .attribute("for_each", "toset(concat([\"roles/datastore.user\"], var.runtime_roles))"),
          .attribute("project", "var.project"), .attribute("role", "each.value"),
          .attribute("member", Self.member("runtime")),
        ]
      ),
    ]
    if plan.needsInvoker {
      blocks.append(account("invoker", CloudPlan.Names.invoker, "Calls the private functions"))
    }
    if !plan.triggers.isEmpty {
      blocks.append(
        HCLBlock(
          "resource \"google_project_iam_member\" \"event_receiver\"",
          [
            .attribute("project", "var.project"),
            .attribute("role", hcl("roles/eventarc.eventReceiver")),
            .attribute("member", Self.member("invoker")),
          ]
        )
      )
    }
    if plan.triggers.contains(where: { $0.kind == .storage }) {
      blocks += [
        HCLBlock("data \"google_storage_project_service_account\" \"storage\"", [Self.afterAPIs]),
        HCLBlock(
          "resource \"google_project_iam_member\" \"storage_publisher\"",
          [
            .attribute("project", "var.project"), .attribute("role", hcl("roles/pubsub.publisher")),
            .attribute(
              "member",
              "data.google_storage_project_service_account.storage.member"
            ),
          ]
        ),
      ]
    }
    if !plan.queues.isEmpty {
      // A task names the account that adds it, and that account has to be allowed to name itself.
      blocks.append(
        HCLBlock(
          "resource \"google_service_account_iam_member\" \"runtime_as_itself\"",
          [
            .attribute("service_account_id", "google_service_account.runtime.name"),
            .attribute("role", hcl("roles/iam.serviceAccountUser")),
            .attribute("member", Self.member("runtime")),
          ]
        )
      )
    }
    return blocks
  }

  func account(_ label: String, _ id: String, _ words: String) -> HCLBlock {
    HCLBlock(
      "resource \"google_service_account\" \"\(label)\"",
      [
        .attribute("account_id", hcl(id)), .attribute("display_name", hcl(words)), Self.afterAPIs,
      ]
    )
  }

  func secret(_ name: String) -> [HCLBlock] {
    [
      HCLBlock(
        "resource \"google_secret_manager_secret\" \"\(name)\"",
        [
          .comment("The value is added by secrets.sh; it is in no file and in no state."),
          .attribute("secret_id", hcl(name)),
          .block(HCLBlock("replication", [.block(HCLBlock("auto"))])), Self.afterAPIs,
        ]
      ),
      HCLBlock(
        "resource \"google_secret_manager_secret_iam_member\" \"\(name)\"",
        [
          .attribute("secret_id", "google_secret_manager_secret.\(name).id"),
          .attribute("role", hcl("roles/secretmanager.secretAccessor")),
          .attribute("member", Self.member("runtime")),
        ]
      ),
    ]
  }

  // MARK: - Firestore

  var firestore: [HCLBlock] {
    var labels = Labels()
    var blocks = plan.databases.enumerated().map { index, name in
      HCLBlock(
        "resource \"google_firestore_database\" \"\(Self.databaseLabel(index))\"",
        [
          .attribute("count", "var.create_database ? 1 : 0"), .attribute("name", hcl(name)),
          .attribute("location_id", "var.firestore_location"),
          .attribute("type", hcl("FIRESTORE_NATIVE")),
          .attribute("deletion_policy", hcl("ABANDON")), Self.afterAPIs,
        ]
      )
    }
    for index in settings.indexes.indexes {
      let label = labels.make([index.collectionGroup] + index.fields.map { $0.fieldPath })
      let fields = Self.complete(index.fields).map { field -> HCLBlock.Item in
        var items: [HCLBlock.Item] = [.attribute("field_path", hcl(field.fieldPath))]
        if let vector = field.vectorConfig {
          items.append(
            .block(
              HCLBlock(
                "vector_config",
                [.attribute("dimension", "\(vector.dimension)"), .block(HCLBlock("flat"))]
              )
            )
          )
        } else if let array = field.arrayConfig {
          items.append(.attribute("array_config", hcl(array)))
        } else {
          items.append(.attribute("order", hcl(field.order ?? "ASCENDING")))
        }
        return .block(HCLBlock("fields", items))
      }
      blocks.append(
        HCLBlock(
          "resource \"google_firestore_index\" \"\(label)\"",
          [
            .attribute("database", hcl("(default)")),
            .attribute("collection", hcl(index.collectionGroup)),
            .attribute("query_scope", hcl(index.queryScope ?? "COLLECTION")),
          ] + fields + [Self.afterDatabase]
        )
      )
    }
    for field in settings.indexes.fieldOverrides {
      let label = labels.make([field.collectionGroup, field.fieldPath])
      var items: [HCLBlock.Item] = [
        .attribute("database", hcl("(default)")),
        .attribute("collection", hcl(field.collectionGroup)),
        .attribute("field", hcl(field.fieldPath)),
      ]
      if field.ttl == true { items.append(.block(HCLBlock("ttl_config"))) }
      if let indexes = field.indexes {
        let blocks = indexes.map { index -> HCLBlock.Item in
          let kind: HCLBlock.Item =
            index.arrayConfig.map { .attribute("array_config", hcl($0)) }
            ?? .attribute("order", hcl(index.order ?? "ASCENDING"))
          return .block(
            HCLBlock(
              "indexes",
              [kind, .attribute("query_scope", hcl(index.queryScope ?? "COLLECTION"))]
            )
          )
        }
        items.append(.block(HCLBlock("index_config", blocks)))
      }
      blocks.append(
        HCLBlock("resource \"google_firestore_field\" \"\(label)\"", items + [Self.afterDatabase])
      )
    }
    if settings.rules != nil { blocks += rules }
    return blocks
  }

  /// Returns the fields of an index as Firestore stores them.
  ///
  /// Firestore adds the document's name before a vector; without it in the file, Terraform would
  /// want to make the index again with each apply.
  static func complete(_ fields: [FirestoreIndexes.Field]) -> [FirestoreIndexes.Field] {
    guard let last = fields.last, last.vectorConfig != nil,
      !fields.contains(where: { $0.fieldPath == "__name__" })
    else { return fields }
    let name = FirestoreIndexes.Field(fieldPath: "__name__", order: "ASCENDING")
    return fields.dropLast() + [name, last]
  }

  var rules: [HCLBlock] {
    [
      HCLBlock(
        "resource \"google_firebaserules_ruleset\" \"firestore\"",
        [
          .block(
            HCLBlock(
              "source",
              [
                .block(
                  HCLBlock(
                    "files",
                    [
                      .attribute("name", hcl("firestore.rules")),
                      .attribute("content", "file(\"${path.module}/firestore.rules\")"),
                    ]
                  )
                )
              ]
            )
          ),
          .block(HCLBlock("lifecycle", [.attribute("create_before_destroy", "true")])),
          Self.afterDatabase,
        ]
      ),
      HCLBlock(
        "resource \"google_firebaserules_release\" \"firestore\"",
        [
          .attribute("name", hcl("cloud.firestore")),
          .attribute(
            "ruleset_name",
            "\"projects/${var.project}/rulesets/${google_firebaserules_ruleset.firestore.name}\""
          ),
        ]
      ),
    ]
  }

  // MARK: - Ends

  /// A target for the first apply, before there is an image or a secret's value.
  var ready: HCLBlock {
    HCLBlock(
      "resource \"terraform_data\" \"foundation\"",
      [
        .comment("terraform apply -target=terraform_data.foundation makes what an image needs."),
        .list(
          "depends_on",
          ["google_artifact_registry_repository.functions"]
            + plan.secrets.map { "google_secret_manager_secret.\($0)" }
        ),
      ]
    )
  }

  var addresses: HCLBlock {
    HCLBlock(
      "output \"addresses\"",
      [
        .attribute("description", hcl("The addresses of the public functions.")),
        .map(
          "value",
          plan.services.filter(\.isPublic).map {
            ("\(hcl("\($0.region)/\($0.function)"))", "google_cloud_run_v2_service.\($0.label).uri")
          }
        ),
      ]
    )
  }

  func hcl(_ text: String) -> String { QuotedText.hcl(text) }

  func region(_ region: String) -> String {
    region == settings.region ? "var.region" : hcl(region)
  }

  /// Returns the name of a database in Terraform; `(default)` is the first of the plan.
  static func databaseLabel(_ index: Int) -> String {
    index == 0 ? "default" : "other_\(index)"
  }

  static func member(_ account: String) -> String {
    "google_service_account.\(account).member"
  }

  static let afterAPIs = HCLBlock.Item.list("depends_on", ["google_project_service.apis"])
  static let afterDatabase = HCLBlock.Item.list(
    "depends_on",
    ["google_firestore_database.default"]
  )

  /// Names of resources that have none, made of their parts.
  private struct Labels {
    private var used: Set<String> = []

    mutating func make(_ parts: [String]) -> String {
      let base = parts.joined(separator: "_").unicodeScalars.map { scalar -> String in
        let isPlain =
          scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
        return isPlain ? String(scalar) : "_"
      }.joined()
      let start = base.first.map { $0.isNumber ? "_" : "" } ?? "_"
      var label = start + base
      var number = 2
      while !used.insert(label).inserted {
        label = "\(start)\(base)_\(number)"
        number += 1
      }
      return label
    }
  }
}
