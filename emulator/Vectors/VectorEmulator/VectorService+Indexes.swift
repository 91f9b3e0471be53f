import HTTPMessages
import HTTPSupport
import HTTPTypes
import JSONText
import StatusCodes
import VectorIndex

/// The control plane, which creates, describes, configures and deletes indexes.
extension VectorService {
  func controlPlane(_ call: VectorCall, _ path: [String]) async throws -> Response {
    if let feature = Self.otherFeatures[path.first ?? ""] { throw feature }
    guard path.first == "indexes", path.count <= 3 else { throw call.unknown }
    let shape = IndexShape(hasSchemas: call.hasSchemas, hasReadCapacity: call.hasReadCapacity)
    func json(_ index: VectorIndexDescription) -> JSONValue {
      shape.json(index, host: host(index.name, call.request))
    }
    switch (call.request.method, path.count > 1 ? path[1] : nil, path.count > 2 ? path[2] : nil) {
    case (.get, nil, nil):
      return .json(["indexes": .array(catalog.indexes().map(json))])
    case (.post, nil, nil):
      let description = try shape.description(try await call.fields())
      try await catalog.create(description)
      return .json(json(description), status: 201)
    case (.post, "create-for-model", nil): throw Self.noHostedModels
    case (_, _?, "backups"): throw Self.noBackups
    case (.get, let name?, nil): return .json(json(try catalog.describe(name)))
    case (.patch, let name?, nil):
      return .json(json(try await configure(name, try await call.fields())), status: 202)
    case (.delete, let name?, nil):
      try await catalog.delete(name)
      return Response(status: .accepted)
    default: throw call.unknown
    }
  }

  private func configure(
    _ name: String,
    _ body: RequestFields
  ) async throws -> VectorIndexDescription {
    _ = try catalog.describe(name)
    if body.has("embed") { throw Self.noHostedModels }
    guard !body.has("schema") else {
      throw StatusError.invalidArgument(
        "The schema of index \(name) cannot be changed; make another index."
      )
    }
    let spec = try body.object("spec")
    guard !body.has("deployment"), spec?.has("pod") != true else {
      throw StatusError.invalidArgument(
        "Index \(name) is serverless: it has no replicas, shards or pods to change."
      )
    }
    try IndexShape.checkReadCapacity(spec?.object("serverless")?.object("read_capacity"))
    try IndexShape.checkReadCapacity(body.object("read_capacity"))
    return try await catalog.configure(
      name,
      tags: body.texts("tags"),
      isProtected: IndexShape.protection(body)
    )
  }

  private func host(_ name: String, _ request: Request) -> String {
    "http://\(request.head.authority ?? "127.0.0.1")/\(Self.dataPlanePrefix)/\(name)"
  }

  private static let noHostedModels = StatusError.notEmulated(
    "Hosted models (embedding, reranking) are",
    "make a dense index and embed in your own code."
  )
  private static let noBackups = StatusError.notEmulated(
    "Backups, collections and restoring from them are",
    "upsert the records again."
  )
  private static let otherFeatures = [
    "collections": noBackups, "backups": noBackups, "restore-jobs": noBackups,
    "embed": noHostedModels, "rerank": noHostedModels, "models": noHostedModels,
  ]
}
