import Identifiers
import JSONText
import StatusCodes
import VectorIndex

/// The JSON form of index descriptions, for API versions before and since schemas.
struct IndexShape {
  /// True if the client uses `schema` and `deployment` instead of `dimension`, `metric` and `spec`.
  var hasSchemas: Bool
  var hasReadCapacity: Bool

  // MARK: - Reading

  /// Reads the description in a request to create an index.
  func description(_ body: RequestFields) throws -> VectorIndexDescription {
    for feature in ["source_collection", "source_backup_id", "cmek_id"] where body.has(feature) {
      throw StatusError.notEmulated("\(feature) is", "leave it out.")
    }
    var description = hasSchemas ? try newDescription(body) : try oldDescription(body)
    description.tags = try body.texts("tags") ?? [:]
    description.isProtected = try Self.protection(body) ?? false
    return description
  }

  /// Reads whether `deletion_protection` is to be enabled; nil if the request does not say.
  static func protection(_ body: RequestFields) throws -> Bool? {
    switch try body.string("deletion_protection") {
    case nil: return nil
    case "enabled": return true
    case "disabled": return false
    case let other?:
      throw MalformedRequestError(
        message: "deletion_protection: unknown variant `\(other)`, expected `enabled` or `disabled`"
      )
    }
  }

  /// Throws for a read capacity other than on-demand, the only one that is emulated.
  static func checkReadCapacity(_ capacity: RequestFields?) throws {
    guard let capacity else { return }
    switch try capacity.required("mode", capacity.string("mode")) {
    case "OnDemand": return
    case "Dedicated":
      throw StatusError(
        .permissionDenied,
        "Dedicated read capacity is not emulated; use {\"mode\": \"OnDemand\"}."
      )
    case let other:
      throw MalformedRequestError(
        message:
          "read_capacity.mode: unknown variant `\(other)`, expected `OnDemand` or `Dedicated`"
      )
    }
  }

  private func oldDescription(_ body: RequestFields) throws -> VectorIndexDescription {
    let name = try body.required("name", body.string("name"))
    let spec = try body.required("spec", body.object("spec"))
    if let kind = spec.first(of: ["pod", "byoc"]) {
      throw StatusError.notEmulated("A spec of kind \(kind) is", "give {\"serverless\": …}.")
    }
    let serverless = try spec.required("serverless", spec.object("serverless"))
    try Self.checkReadCapacity(serverless.object("read_capacity"))
    let type = try body.string("vector_type") ?? "dense"
    guard type == "dense" else {
      guard type == "sparse" else {
        throw StatusError.invalidArgument("vector_type is \"\(type)\"; give \"dense\".")
      }
      throw Self.noSparseIndex
    }
    guard let dimension = try body.integer("dimension") else {
      throw StatusError.invalidArgument("A dense index needs a dimension.")
    }
    return VectorIndexDescription(
      name: name,
      dimension: dimension,
      metric: try Self.metric(body.string("metric") ?? "cosine"),
      cloud: try Self.cloud(serverless),
      region: try serverless.required("region", serverless.string("region"))
    )
  }

  private func newDescription(_ body: RequestFields) throws -> VectorIndexDescription {
    let schema = try body.required("schema", body.object("schema"))
    let fields = try schema.required("fields", schema.object("fields"))
    try Self.checkReadCapacity(body.object("read_capacity"))
    var description = VectorIndexDescription(
      name: try body.string("name") ?? Self.randomName(),
      dimension: 0,
      metric: .cosine
    )
    var vectors = 0
    for name in fields.members.keys.sorted() {
      let field = try fields.required(name, fields.object(name))
      guard try Self.isVector(field, name) else { continue }
      vectors += 1
      description.field = name
      description.dimension = try field.required("dimension", field.integer("dimension"))
      description.metric = try Self.metric(field.required("metric", field.string("metric")))
    }
    guard vectors == 1 else {
      throw vectors == 0
        ? StatusError.invalidArgument("The schema needs a dense_vector field.")
        : StatusError.notEmulated(
          "A schema with \(vectors) dense_vector fields is",
          "declare one and make an index for each of the others."
        )
    }
    try Self.check(field: description.field)
    if let deployment = try body.object("deployment") { try Self.read(deployment, &description) }
    return description
  }

  private static func isVector(_ field: RequestFields, _ name: String) throws -> Bool {
    let type = try field.required("type", field.string("type"))
    switch type {
    case "dense_vector": return true
    case "sparse_vector": throw noSparseIndex
    case "string":
      if let feature = field.first(of: ["full_text_search", "embed", "sparse_embed"]) {
        throw StatusError.notEmulated(
          "Field '\(name)' with \(feature) is",
          "leave it out of the schema: what is not declared is metadata."
        )
      }
      guard field.has("filterable") else {
        throw MalformedRequestError(
          message: "schema.fields.\(name): missing field `full_text_search`"
        )
      }
      throw metadataField(name)
    case "boolean", "float", "integer", "string_list", "semantic_text": throw metadataField(name)
    default:
      throw MalformedRequestError(
        message: "schema.fields.\(name).type: unknown variant `\(type)`, expected `dense_vector`, "
          + "`sparse_vector` or `string`"
      )
    }
  }

  private static func metadataField(_ name: String) -> StatusError {
    .invalidArgument(
      "Field '\(name)' cannot be declared: the schema only accepts fields used for search. Metadata "
        + "fields are indexed for filtering when they are upserted."
    )
  }

  private static func check(field name: String) throws {
    if name == VectorIndexDescription.vectorsField { return }
    guard (1...64).contains(name.utf8.count), !name.hasPrefix("_"), !name.hasPrefix("$") else {
      throw StatusError.invalidArgument(
        "Invalid schema field name '\(name)': use 1 to 64 bytes, not starting with _ or $."
      )
    }
  }

  private static func read(
    _ deployment: RequestFields,
    _ description: inout VectorIndexDescription
  ) throws {
    let type = try deployment.required("deployment_type", deployment.string("deployment_type"))
    switch type {
    case "managed":
      description.cloud = try cloud(deployment)
      description.region = try deployment.required("region", deployment.string("region"))
    case "pod", "byoc":
      throw StatusError.notEmulated("A deployment of type \(type) is", "use \"managed\".")
    default:
      throw MalformedRequestError(
        message: "deployment.deployment_type: unknown variant `\(type)`, expected `managed`, `pod` "
          + "or `byoc`"
      )
    }
  }

  private static func cloud(_ fields: RequestFields) throws -> String {
    let cloud = try fields.required("cloud", fields.string("cloud"))
    guard ["aws", "gcp", "azure"].contains(cloud) else {
      let region = try fields.string("region") ?? ""
      throw StatusError(.notFound, "Resource cloud: \(cloud) region: \(region) not found.")
    }
    return cloud
  }

  private static func metric(_ name: String) throws -> VectorIndexDescription.Metric {
    guard let metric = VectorIndexDescription.Metric(rawValue: name) else {
      throw StatusError.invalidArgument(
        "Invalid metric \"\(name)\": give cosine, euclidean or dotproduct."
      )
    }
    return metric
  }

  private static func randomName() -> String { "index-\(RandomID.make(length: 10).lowercased())" }

  private static let noSparseIndex = StatusError.notEmulated(
    "A sparse index is",
    "make a dense one."
  )

  // MARK: - Writing

  /// Returns the description of an index in a response.
  func json(_ index: VectorIndexDescription, host: String) -> JSONValue {
    let onDemand: JSONValue = ["mode": "OnDemand", "status": ["state": "Ready"]]
    let tags = JSONValue.object(index.tags.mapValues { .string($0) })
    let metric = JSONValue.string(index.metric.rawValue)
    let common: [String: JSONValue] = [
      "name": .string(index.name), "host": .string(host),
      "status": ["ready": true, "state": "Ready"],
      "deletion_protection": .string(index.isProtected ? "enabled" : "disabled"),
    ]
    let own: [String: JSONValue] =
      hasSchemas
      ? [
        "schema": [
          "fields": .object([
            index.field: [
              "type": "dense_vector", "dimension": JSONValue(index.dimension), "metric": metric,
            ]
          ])
        ],
        "deployment": [
          "deployment_type": "managed", "cloud": .string(index.cloud),
          "region": .string(index.region),
        ],
        "read_capacity": onDemand, "tags": index.tags.isEmpty ? .null : tags,
      ]
      : [
        "dimension": JSONValue(index.dimension), "metric": metric, "vector_type": "dense",
        "tags": tags,
        "spec": [
          "serverless": [
            "cloud": .string(index.cloud), "region": .string(index.region),
            "read_capacity": hasReadCapacity ? onDemand : nil,
          ]
        ],
      ]
    return .object(common.merging(own) { $1 })
  }
}
