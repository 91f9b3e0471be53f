import HTTPMessages
import HTTPSupport
import HTTPTypes
import JSONText
import StatusCodes
import VectorIndex

/// The calls for indexes with hosted embedding, as far as they work without embedding.
extension VectorService {
  func records(
    _ call: VectorCall,
    _ index: VectorIndexDescription,
    namespace: String,
    _ operation: String
  ) async throws -> Response {
    switch (call.request.method, operation) {
    case (.post, "search"):
      return try await searchRecords(call.fields(), index, namespace: namespace)
    case (.post, "upsert"): throw Self.noEmbedding
    default: throw call.unknown
    }
  }

  private func searchRecords(
    _ body: RequestFields,
    _ index: VectorIndexDescription,
    namespace: String
  ) async throws -> Response {
    let query = try body.required("query", body.object("query"))
    guard !query.has("inputs"), !query.has("match_terms"), !body.has("rerank") else {
      throw Self.noEmbedding
    }
    let vector = try query.object("vector")
    guard vector?.first(of: ["sparse_values", "sparse_indices"]) == nil else {
      throw Self.noSparseValues
    }
    let included = IncludedFields(try body.strings("fields") ?? [], emptyIsAll: !body.has("fields"))
    let matches = try await nearest(
      values: vector?.floats("values"),
      id: query.string("id"),
      filter: query["filter"],
      limit: Self.topK(query.required("top_k", query.integer("top_k"))),
      withValues: false,
      index,
      namespace: Self.name(namespace)
    )
    return .json([
      "result": [
        "hits": .array(
          matches.map { match in
            let fields = match.record.metadata.filter { included.contains($0.key) }
            return [
              "_id": .string(match.record.id), "_score": .float(match.score), "fields": fields.json,
            ]
          }
        )
      ],
      "namespace": .string(namespace), "usage": ["read_units": 1],
    ])
  }

  private static let noEmbedding = StatusError.notEmulated(
    "Integrated inference (hosted embedding and reranking) is",
    "upsert and search with vectors that your own code made."
  )
}
