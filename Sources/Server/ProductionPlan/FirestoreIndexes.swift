/// The contents of `firestore.indexes.json`, in the form of Firebase's tools.
package struct FirestoreIndexes: Codable, Sendable, Hashable {
  package var indexes: [Composite]
  package var fieldOverrides: [FieldOverride]

  package init(indexes: [Composite] = [], fieldOverrides: [FieldOverride] = []) {
    self.indexes = indexes
    self.fieldOverrides = fieldOverrides
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    indexes = try container.decodeIfPresent([Composite].self, forKey: .indexes) ?? []
    fieldOverrides =
      try container.decodeIfPresent([FieldOverride].self, forKey: .fieldOverrides) ?? []
  }

  /// An index of several fields, or of a vector.
  package struct Composite: Codable, Sendable, Hashable {
    package var collectionGroup: String
    /// One of ``FirestoreIndexes/scopes``; `COLLECTION` when absent.
    package var queryScope: String?
    package var fields: [Field]
  }

  /// A field of an index, with exactly one of an order, an array's or a vector's configuration.
  package struct Field: Codable, Sendable, Hashable {
    package var fieldPath: String
    package var order: String?
    package var arrayConfig: String?
    package var vectorConfig: VectorConfig?
  }

  /// The dimension of a vector index, which is always flat.
  package struct VectorConfig: Codable, Sendable, Hashable {
    package var dimension: Int
  }

  /// The settings of one field that replace the automatic indexes.
  package struct FieldOverride: Codable, Sendable, Hashable {
    package var collectionGroup: String
    package var fieldPath: String
    /// True if documents are deleted at the time in the field.
    package var ttl: Bool?
    /// The indexes of the field; none if empty, and the automatic ones if absent.
    package var indexes: [FieldIndex]?
  }

  /// An index of one field.
  package struct FieldIndex: Codable, Sendable, Hashable {
    package var order: String?
    package var arrayConfig: String?
    package var queryScope: String?
  }
}

extension FirestoreIndexes.Composite {
  /// The fields in words, such as `role ASCENDING, timestamp DESCENDING`.
  var words: String { fields.map { "\($0.fieldPath) \($0.kind)" }.joined(separator: ", ") }
}

extension FirestoreIndexes.Field {
  /// The kind of index in words, such as `ASCENDING` or `vector of 1536`.
  var kind: String {
    if let vectorConfig { return "vector of \(vectorConfig.dimension)" }
    return order ?? arrayConfig ?? "ASCENDING"
  }
}

extension FirestoreIndexes.FieldOverride {
  /// The override in words.
  var words: String {
    let kinds = indexes.map { list in
      list.map { "\($0.order ?? $0.arrayConfig ?? "ASCENDING") \($0.queryScope ?? "COLLECTION")" }
        .joined(separator: ", ")
    }
    let text = kinds.map { $0.isEmpty ? "no indexes" : $0 } ?? "automatic indexes"
    return ttl == true ? text + ", time to live" : text
  }
}
