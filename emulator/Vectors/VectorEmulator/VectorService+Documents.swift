import HTTPMessages
import HTTPSupport
import HTTPTypes
import JSONText
import StatusCodes
import VectorIndex

/// The document API, in which a record is a document with a named vector field.
///
/// It also serves an index of plain vectors, whose vector field is `_values`.
extension VectorService {
  func documents(
    _ call: VectorCall,
    _ index: VectorIndexDescription,
    namespace: String,
    _ operation: String
  ) async throws -> Response {
    guard call.request.method == .post else { throw call.unknown }
    guard !namespace.isEmpty else {
      throw StatusError.invalidArgument("The namespace of a document call must not be empty.")
    }
    let body = try await call.fields()
    let place = DocumentPlace(index: index, shown: namespace, namespace: try Self.name(namespace))
    switch operation {
    case "upsert": return try await upsertDocuments(body, place)
    case "search": return try await searchDocuments(body, place)
    case "fetch": return try await fetchDocuments(body, place)
    case "update": return try await updateDocuments(body, place)
    case "delete": return try await deleteDocuments(body, place)
    case "list": return try await listDocuments(body, place)
    default: throw call.unknown
    }
  }

  private func upsertDocuments(
    _ body: RequestFields,
    _ place: DocumentPlace
  ) async throws -> Response {
    let documents = try body.required("documents", body.objects("documents"))
    var seen: Set<String> = []
    let records = try documents.map { document in
      let patch = try DocumentPatch(document, place.index)
      guard seen.insert(patch.id).inserted else {
        throw StatusError.invalidArgument("Document '\(patch.id)' comes twice in the request.")
      }
      guard let values = patch.values else {
        throw StatusError.invalidArgument(
          "Document '\(patch.id)' is missing the required field '\(place.index.field)', a "
            + "dense_vector with dimension \(place.index.dimension)."
        )
      }
      return VectorRecord(id: patch.id, values: values, metadata: patch.metadata)
    }
    try Self.checkSize(records)
    try await catalog.upsert(records, index: place.index.name, namespace: place.namespace)
    return .json(["upserted_count": JSONValue(records.count)], status: 202)
  }

  private func searchDocuments(
    _ body: RequestFields,
    _ place: DocumentPlace
  ) async throws -> Response {
    let values = try Self.scoring(
      body.required("score_by", body.objects("score_by")),
      place.index
    )
    let included = IncludedFields(try body.strings("include_fields") ?? [], emptyIsAll: false)
    let matches = try await nearest(
      values: values,
      id: nil,
      filter: body["filter"],
      limit: Self.topK(body.required("top_k", body.integer("top_k"))),
      withValues: included.contains(place.index.field),
      place.index,
      namespace: place.namespace
    )
    return .json([
      "matches": .array(
        matches.map { match in
          var members = included.members(of: match.record, place.index)
          members["_score"] = .float(match.score)
          return .object(members)
        }
      ),
      "namespace": .string(place.shown), "usage": Self.documentReadUnits,
    ])
  }

  /// Returns the vector of a search's only scoring clause.
  private static func scoring(
    _ clauses: [RequestFields],
    _ index: VectorIndexDescription
  ) throws -> [Float] {
    guard let clause = clauses.first, clauses.count <= 100 else {
      throw StatusError.invalidArgument(
        "'score_by' has \(clauses.count) scoring methods; give 1 to 100."
      )
    }
    for clause in clauses {
      let type = try clause.required("type", clause.string("type"))
      switch type {
      case "dense_vector": continue
      case "text", "query_string", "sparse_vector", "embed", "sparse_embed":
        throw StatusError.notEmulated(
          "Scoring by \(type) is",
          "score by dense_vector, with a vector that your own code made."
        )
      default:
        throw MalformedRequestError(
          message: "score_by: unknown type `\(type)`, expected `dense_vector`, `sparse_vector`, "
            + "`text` or `query_string`"
        )
      }
    }
    guard clauses.count == 1 else {
      throw StatusError.invalidArgument(
        "'score_by' clauses of type 'dense_vector' must appear alone."
      )
    }
    let fields = try clause.strings("fields") ?? clause.string("field").map { [$0] } ?? []
    guard fields.count == 1, !(clause.has("field") && clause.has("fields")) else {
      throw StatusError.invalidArgument(
        "dense_vector scoring requires specifying the name of exactly one field"
      )
    }
    guard fields == [index.field] else {
      throw StatusError.invalidArgument(
        "Field '\(fields[0])' is not a dense_vector field of the index; '\(index.field)' is."
      )
    }
    return try clause.required("values", clause.floats("values"))
  }

  private func fetchDocuments(
    _ body: RequestFields,
    _ place: DocumentPlace
  ) async throws -> Response {
    let included = IncludedFields(try body.strings("include_fields") ?? [], emptyIsAll: true)
    let limit = try Self.limit(body.integer("limit"), upTo: 10_000)
    let token = try body.string("pagination_token")
    var last: String?
    let records: [VectorRecord]
    switch (try body.strings("ids"), body["filter"]) {
    case (let ids?, nil) where token == nil:
      records = try await catalog.fetch(
        Self.ids(ids),
        index: place.index.name,
        namespace: place.namespace
      )
    case (nil, let filter?):
      (records, last) = try await page(
        Self.selection(filter, place.index, orSay: Self.emptyFilter),
        limit: limit,
        after: PageToken.id(token),
        place.index,
        namespace: place.namespace
      )
    case (nil, nil):
      throw StatusError.invalidArgument(
        "No 'ids' or 'filter' provided in the document fetch request. Provide at least one document "
          + "ID in 'ids', or a metadata filter in 'filter'."
      )
    default:
      throw StatusError.invalidArgument(
        "The 'ids' field is mutually exclusive with 'filter' and 'pagination_token' in document "
          + "fetch requests."
      )
    }
    var documents: [String: JSONValue] = [:]
    for record in records {
      documents[record.id] = .object(included.members(of: record, place.index))
    }
    return .json([
      "documents": .object(documents), "namespace": .string(place.shown),
      "usage": Self.documentReadUnits, "pagination": PageToken.json(after: last),
    ])
  }

  private func updateDocuments(
    _ body: RequestFields,
    _ place: DocumentPlace
  ) async throws -> Response {
    let documents = try body.objects("documents")
    let setFields = try body.object("set_fields")?.members ?? [:]
    let removed = try body.strings("remove_fields") ?? []
    let isPatch = !setFields.isEmpty || !removed.isEmpty
    switch (documents, body["filter"]) {
    case (let documents?, nil) where !isPatch:
      guard (1...1000).contains(documents.count) else {
        throw StatusError.invalidArgument(
          "A request updates 1 to 1000 documents; this one has \(documents.count)."
        )
      }
      var patches: [String: DocumentPatch] = [:]
      for document in documents {
        let patch = try DocumentPatch(document, place.index)
        guard patches.updateValue(patch, forKey: patch.id) == nil else {
          throw StatusError.invalidArgument("Document '\(patch.id)' comes twice in the request.")
        }
      }
      let byID = patches
      try await catalog.update(
        patches.keys.sorted(),
        index: place.index.name,
        namespace: place.namespace
      ) { record in byID[record.id]?.apply(to: &record) }
      return .json([:], status: 202)
    case (nil, let filter?):
      let selection = try Self.selection(filter, place.index, orSay: Self.emptyFilter)
      guard isPatch else {
        throw StatusError.invalidArgument(
          "A document update by 'filter' must change something. Provide 'set_fields' and/or "
            + "'remove_fields' alongside 'filter'."
        )
      }
      let patch = try DocumentPatch(set: setFields, remove: removed, place.index)
      let ids = try await catalog.ids(
        matching: selection,
        index: place.index.name,
        namespace: place.namespace
      )
      try await catalog.update(
        ids,
        matching: selection,
        index: place.index.name,
        namespace: place.namespace
      ) { patch.apply(to: &$0) }
      return .json(["matched_records": JSONValue(ids.count)], status: 202)
    case (nil, nil):
      throw StatusError.invalidArgument(
        isPatch
          ? "The 'set_fields' and 'remove_fields' fields are only valid together with 'filter' in "
            + "document update requests."
          : "No 'documents' or 'filter' provided in the document update request."
      )
    default:
      throw StatusError.invalidArgument(
        "The 'documents' field is mutually exclusive with the by-filter fields ('filter', "
          + "'set_fields', 'remove_fields') in document update requests."
      )
    }
  }

  private func deleteDocuments(
    _ body: RequestFields,
    _ place: DocumentPlace
  ) async throws -> Response {
    let deletesAll = try body.boolean("delete_all") ?? false
    switch (try body.strings("ids"), body["filter"], deletesAll) {
    case (let ids?, nil, false):
      try await catalog.remove(
        try Self.ids(ids),
        index: place.index.name,
        namespace: place.namespace
      )
      return .json([:], status: 202)
    case (nil, let filter?, false):
      let removed = try await catalog.remove(
        matching: try Self.selection(filter, place.index, orSay: Self.emptyFilter),
        index: place.index.name,
        namespace: place.namespace
      )
      return .json(["matched_records": JSONValue(removed)], status: 202)
    case (nil, nil, true):
      // In a namespace without writes there is nothing to delete.
      let namespaces = try await catalog.namespaces(index: place.index.name)
      if namespaces.contains(where: { $0.name == place.namespace }) {
        try await catalog.removeAll(index: place.index.name, namespace: place.namespace)
      }
      return .json([:], status: 202)
    case (nil, nil, false):
      throw StatusError.invalidArgument(
        "No 'ids', 'filter', or 'delete_all' provided in the document delete request. Provide "
          + "exactly one of them."
      )
    default:
      throw StatusError.invalidArgument(
        "The 'ids', 'filter' and 'delete_all' fields are mutually exclusive in document delete "
          + "requests."
      )
    }
  }

  private func listDocuments(
    _ body: RequestFields,
    _ place: DocumentPlace
  ) async throws -> Response {
    let limit = try Self.limit(body.integer("limit"), upTo: 100)
    let ids = try await catalog.list(
      prefix: Self.prefix(body.string("prefix")),
      after: PageToken.id(body.string("pagination_token")),
      limit: limit + 1,
      index: place.index.name,
      namespace: place.namespace
    )
    let page = ids.prefix(limit)
    return .json([
      "documents": .array(page.map { ["_id": .string($0)] }), "namespace": .string(place.shown),
      "usage": Self.documentReadUnits,
      "pagination": ids.count > limit ? PageToken.json(after: page.last) : nil,
    ])
  }

  private static let documentReadUnits: JSONValue = ["read_units": 1]
  private static let emptyFilter =
    "The 'filter' field must be a non-empty object of filter predicates, for example "
    + #"{"category": {"$eq": "news"}}."#
}

/// The index and the namespace of a document call.
struct DocumentPlace: Sendable {
  var index: VectorIndexDescription
  /// The namespace as the client named it.
  var shown: String
  var namespace: String
}
