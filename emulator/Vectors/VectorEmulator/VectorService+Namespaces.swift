import HTTPMessages
import HTTPSupport
import HTTPTypes
import JSONText
import StatusCodes
import VectorIndex

/// The calls that list, create, describe and delete namespaces.
extension VectorService {
  func namespaces(
    _ call: VectorCall,
    _ index: VectorIndexDescription,
    _ name: String?
  ) async throws -> Response {
    switch (call.request.method, name) {
    case (.get, nil): return try await listNamespaces(call, index)
    case (.post, nil): return try await createNamespace(call, index)
    case (.get, let name?):
      guard let found = try await namespace(Self.name(name), index) else {
        throw StatusError(.notFound, "Namespace not found")
      }
      return .json(description(found, call))
    case (.delete, let name?):
      try await catalog.deleteNamespace(Self.name(name), index: index.name)
      return .json([:])
    default: throw call.unknown
    }
  }

  /// Returns a namespace; the default namespace exists even before its first record.
  private func namespace(
    _ name: String,
    _ index: VectorIndexDescription
  ) async throws -> VectorNamespace? {
    let found = try await catalog.namespaces(index: index.name).first { $0.name == name }
    return found ?? (name.isEmpty ? VectorNamespace(name: name) : nil)
  }

  private func listNamespaces(
    _ call: VectorCall,
    _ index: VectorIndexDescription
  ) async throws -> Response {
    let query = call.request.query
    let limit = try Self.limit(Self.number(query["limit"]), upTo: 100)
    let prefix = try Self.prefix(query["prefix"])
    let after = try PageToken.id(query["paginationToken"])
    let all = try await catalog.namespaces(index: index.name)
      .map { (name: Self.shown($0.name), namespace: $0) }
      .filter { $0.name.utf8.starts(with: prefix.utf8) }
      .sorted { $0.name < $1.name }
    let rest = all.filter { named in after.map { named.name > $0 } ?? true }
    let page = rest.prefix(limit)
    return .json([
      "namespaces": .array(page.map { description($0.namespace, call) }),
      "pagination": rest.count > limit ? PageToken.json(after: page.last?.name) : nil,
      "total_count": JSONValue(all.count),
    ])
  }

  private func createNamespace(
    _ call: VectorCall,
    _ index: VectorIndexDescription
  ) async throws -> Response {
    let body = try await call.fields()
    let name = try Self.name(body.required("name", body.string("name")))
    guard !name.isEmpty else {
      throw StatusError.invalidArgument(
        "Namespace \(Self.defaultNamespace) is reserved: it always exists. Give another name."
      )
    }
    let fields = try body.object("schema")?.object("fields")
    for field in fields?.members.keys.sorted() ?? [] {
      guard try fields?.object(field)?.boolean("filterable") == true else {
        throw StatusError.invalidArgument(
          "Field '\(field)' is set to filterable: false. Only filterable: true is supported. To "
            + "avoid indexing the field, omit it from the list of fields."
        )
      }
    }
    let created = VectorNamespace(name: name, filterableFields: fields?.members.keys.sorted() ?? [])
    try await catalog.createNamespace(
      name,
      index: index.name,
      filterableFields: created.filterableFields
    )
    return .json(description(created, call))
  }

  /// Returns the description of a namespace.
  ///
  /// Since the API versions with schemas, 64-bit numbers are strings.
  private func description(_ namespace: VectorNamespace, _ call: VectorCall) -> JSONValue {
    func count(_ number: Int) -> JSONValue {
      call.hasSchemas ? .string("\(number)") : JSONValue(number)
    }
    let fields = namespace.filterableFields
    let schema: JSONValue = [
      "fields": .object(
        Dictionary(uniqueKeysWithValues: fields.map { ($0, ["filterable": true]) })
      )
    ]
    return [
      "name": .string(Self.shown(namespace.name)), "record_count": count(namespace.recordCount),
      "schema": fields.isEmpty ? nil : schema,
      "indexed_fields": fields.isEmpty ? nil : ["fields": .array(fields.map { .string($0) })],
      "size_bytes": call.hasSchemas ? count(namespace.bytes) : nil,
    ]
  }

  private static func shown(_ name: String) -> String { name.isEmpty ? defaultNamespace : name }
}
