import HTTPMessages
import HTTPSupport
import HTTPTypes
import JSONText
import StatusCodes
import VectorIndex

/// The calls that read and write vectors.
extension VectorService {
  func vectors(
    _ call: VectorCall,
    _ index: VectorIndexDescription,
    _ path: String
  ) async throws -> Response {
    switch (call.request.method, path) {
    case (.post, "vectors/upsert"): try await upsert(try await call.fields(), index)
    case (.post, "query"): try await query(try await call.fields(), index)
    case (.get, "vectors/fetch"): try await fetch(call.request.query, index)
    case (.post, "vectors/fetch_by_metadata"): try await fetchAll(try await call.fields(), index)
    case (.post, "vectors/update"): try await update(try await call.fields(), index)
    case (.post, "vectors/delete"): try await delete(try await call.fields(), index)
    case (.get, "vectors/list"): try await list(call.request.query, index)
    case (.post, "describe_index_stats"), (.get, "describe_index_stats"):
      try await stats(try await call.fields(), index)
    default: throw call.unknown
    }
  }

  private func upsert(
    _ body: RequestFields,
    _ index: VectorIndexDescription
  ) async throws -> Response {
    try Self.checkHoldsVectors(index)
    let vectors = try body.required("vectors", body.objects("vectors"))
    let records = try vectors.map { vector in
      let id = try vector.required("id", vector.string("id"))
      guard !vector.has("sparseValues") else { throw Self.noSparseValues }
      guard let values = try vector.floats("values"), !values.isEmpty else {
        throw StatusError.invalidArgument("Vector \(id) has no values.")
      }
      return VectorRecord(id: id, values: values, metadata: try vector.metadata("metadata") ?? [:])
    }
    try Self.checkSize(records)
    try await catalog.upsert(
      records,
      index: index.name,
      namespace: Self.name(body.string("namespace"))
    )
    return .json(["upsertedCount": JSONValue(records.count)])
  }

  private func query(
    _ body: RequestFields,
    _ index: VectorIndexDescription
  ) async throws -> Response {
    let topK = try Self.topK(body.required("topK", body.integer("topK")))
    let namespace = try body.string("namespace")
    let withValues = try body.boolean("includeValues") ?? false
    let withMetadata = try body.boolean("includeMetadata") ?? false
    guard !body.has("sparseVector") else { throw Self.noSparseValues }
    let matches = try await nearest(
      values: body.floats("vector"),
      id: body.string("id"),
      filter: body["filter"],
      limit: topK,
      withValues: withValues,
      index,
      namespace: Self.name(namespace)
    )
    return .json([
      "matches": .array(
        matches.map { match in
          [
            "id": .string(match.record.id), "score": .float(match.score),
            "values": .floats(match.record.values),
            "metadata": withMetadata ? match.record.metadataJSON : nil,
          ]
        }
      ),
      "namespace": .string(namespace ?? ""), "usage": Self.readUnits,
    ])
  }

  /// Returns the matches for a vector or for a stored record's vector.
  ///
  /// Returns no matches if there is no record with the id.
  func nearest(
    values: [Float]?,
    id: String?,
    filter: JSONValue?,
    limit: Int,
    withValues: Bool,
    _ index: VectorIndexDescription,
    namespace: String
  ) async throws -> [VectorMatch] {
    let filter = try filter.map { try Self.filter($0, index) }
    let query: [Float]
    switch (values, id) {
    case (.some, .some):
      throw StatusError.invalidArgument("Cannot provide both 'ID' and 'vector' at the same time.")
    case (nil, nil): throw StatusError.invalidArgument("Must provide either 'vector' or 'id'.")
    case (let values?, nil):
      guard values.allSatisfy(\.isFinite) else {
        throw StatusError.invalidArgument("The query vector has a value that is not a number.")
      }
      query = values
    case (nil, let id?):
      try VectorCatalog.check(id: id)
      let found = try await catalog.fetch([id], index: index.name, namespace: namespace)
      guard let record = found.first else { return [] }
      query = record.values
    }
    return try await catalog.query(
      query,
      filter: filter,
      limit: limit,
      withValues: withValues,
      index: index.name,
      namespace: namespace
    )
  }

  private func fetch(
    _ query: QueryParameters,
    _ index: VectorIndexDescription
  ) async throws -> Response {
    let namespace = query["namespace"]
    let records = try await catalog.fetch(
      Self.ids(query.all("ids")),
      index: index.name,
      namespace: Self.name(namespace)
    )
    return .json([
      "vectors": Self.vectors(records), "namespace": .string(namespace ?? ""),
      "usage": Self.readUnits,
    ])
  }

  private func fetchAll(
    _ body: RequestFields,
    _ index: VectorIndexDescription
  ) async throws -> Response {
    let filter = try Self.selection(
      body.required("filter", body["filter"]),
      index,
      orSay: "Empty filter provided for fetch by metadata request"
    )
    let namespace = try body.string("namespace")
    let page = try await self.page(
      filter,
      limit: Self.limit(body.integer("limit"), upTo: 10_000),
      after: PageToken.id(body.string("paginationToken")),
      index,
      namespace: Self.name(namespace)
    )
    return .json([
      "vectors": Self.vectors(page.records), "namespace": .string(namespace ?? ""),
      "usage": Self.readUnits, "pagination": PageToken.json(after: page.last),
    ])
  }

  /// Returns a page of the records that match a filter, by id.
  ///
  /// `last` is the page's last id if more records follow, and nil otherwise.
  func page(
    _ filter: MetadataFilter,
    limit: Int,
    after: String?,
    _ index: VectorIndexDescription,
    namespace: String
  ) async throws -> (records: [VectorRecord], last: String?) {
    let all = try await catalog.ids(matching: filter, index: index.name, namespace: namespace)
    let rest =
      after.map { after in all[(all.firstIndex { $0 > after } ?? all.endIndex)...] } ?? all[...]
    let ids = Array(rest.prefix(limit))
    let records = try await catalog.fetch(ids, index: index.name, namespace: namespace)
    return (records, rest.count > limit ? ids.last : nil)
  }

  private func update(
    _ body: RequestFields,
    _ index: VectorIndexDescription
  ) async throws -> Response {
    try Self.checkHoldsVectors(index)
    let namespace = try Self.name(body.string("namespace"))
    let metadata = try body.metadata("setMetadata") ?? [:]
    let values = try body.floats("values")
    guard !body.has("sparseValues") else { throw Self.noSparseValues }
    switch (try body.string("id"), body["filter"]) {
    case (let id?, nil):
      try VectorCatalog.check(id: id)
      try await catalog.update([id], index: index.name, namespace: namespace) { record in
        if let values { record.values = values }
        record.metadata.merge(metadata) { $1 }
      }
      return .json([:])
    case (nil, let filter?):
      guard values == nil else {
        throw StatusError.invalidArgument(
          "Update by metadata request does not support updating vector values."
        )
      }
      let selection = try Self.selection(
        filter,
        index,
        orSay: "Update with empty metadata filter is not allowed"
      )
      let ids = try await catalog.ids(
        matching: selection,
        index: index.name,
        namespace: namespace
      )
      if try body.boolean("dryRun") != true, !metadata.isEmpty {
        try await catalog.update(
          ids,
          matching: selection,
          index: index.name,
          namespace: namespace
        ) { record in
          record.metadata.merge(metadata) { $1 }
        }
      }
      return .json(["matchedRecords": JSONValue(ids.count)])
    default:
      throw StatusError.invalidArgument("Exactly one of 'id' and 'filter' must be provided.")
    }
  }

  private func delete(
    _ body: RequestFields,
    _ index: VectorIndexDescription
  ) async throws -> Response {
    try Self.checkHoldsVectors(index)
    let namespace = try Self.name(body.string("namespace"))
    let ids = try body.strings("ids")
    let deletesAll = try body.boolean("deleteAll") ?? false
    switch (ids, deletesAll, body["filter"]) {
    case (.some(let ids), true, _) where !ids.isEmpty:
      throw StatusError.invalidArgument("No explicit IDs allowed when delete_all=true")
    case (_, true, .some):
      throw StatusError.invalidArgument("No filter allowed when delete_all=true")
    case (_, true, nil): try await catalog.removeAll(index: index.name, namespace: namespace)
    case (let ids?, false, nil):
      try await catalog.remove(try Self.ids(ids), index: index.name, namespace: namespace)
    case (nil, false, let filter?):
      let selection = try Self.selection(
        filter,
        index,
        orSay: "Delete with empty metadata filter is not allowed"
      )
      try await catalog.remove(matching: selection, index: index.name, namespace: namespace)
    default:
      throw StatusError.invalidArgument(
        "Exactly one of 'ids', 'deleteAll' and 'filter' must be provided."
      )
    }
    return .json([:])
  }

  private func list(
    _ query: QueryParameters,
    _ index: VectorIndexDescription
  ) async throws -> Response {
    let namespace = query["namespace"]
    let limit = try Self.limit(Self.number(query["limit"]), upTo: 100)
    let ids = try await catalog.list(
      prefix: Self.prefix(query["prefix"]),
      after: PageToken.id(query["paginationToken"]),
      limit: limit + 1,
      index: index.name,
      namespace: Self.name(namespace)
    )
    let page = ids.prefix(limit)
    return .json([
      "vectors": .array(page.map { ["id": .string($0)] }), "namespace": .string(namespace ?? ""),
      "usage": Self.readUnits,
      "pagination": ids.count > limit ? PageToken.json(after: page.last) : nil,
    ])
  }

  /// Parses a number in a query; any other text becomes -1, which is out of every range.
  static func number(_ text: String?) -> Int? { text.map { Int($0) ?? -1 } }

  private func stats(
    _ body: RequestFields,
    _ index: VectorIndexDescription
  ) async throws -> Response {
    if case .object(let filter)? = body["filter"], !filter.isEmpty {
      throw StatusError.invalidArgument(
        "Serverless and Starter indexes do not support describing index stats with metadata "
          + "filtering"
      )
    }
    let namespaces = try await catalog.namespaces(index: index.name)
    return .json([
      "namespaces": .object(
        Dictionary(
          uniqueKeysWithValues: namespaces.map { namespace in
            (namespace.name, ["vectorCount": JSONValue(namespace.recordCount)])
          }
        )
      ),
      "dimension": JSONValue(index.dimension), "indexFullness": 0,
      "totalVectorCount": JSONValue(namespaces.reduce(0) { $0 + $1.recordCount }),
      "metric": .string(index.metric.rawValue), "vectorType": "dense",
    ])
  }

  private static func vectors(_ records: [VectorRecord]) -> JSONValue {
    var vectors: [String: JSONValue] = [:]
    for record in records {
      vectors[record.id] = [
        "id": .string(record.id), "values": .floats(record.values),
        "metadata": record.metadataJSON,
      ]
    }
    return .object(vectors)
  }

  private static func checkHoldsVectors(_ index: VectorIndexDescription) throws {
    guard !index.holdsDocuments else {
      throw StatusError.invalidArgument(
        "Index \(index.name) has a schema with the field \"\(index.field)\"; write it with the "
          + "documents API, /namespaces/{namespace}/documents/…"
      )
    }
  }

  static let noSparseValues = StatusError.notEmulated(
    "Sparse values are",
    "this index holds dense vectors only."
  )
}

extension VectorRecord {
  /// The metadata as JSON for a response; nil if there is none.
  var metadataJSON: JSONValue? { metadata.isEmpty ? nil : metadata.json }
}
