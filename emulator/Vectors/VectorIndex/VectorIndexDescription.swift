/// The description of an index as its creator declared it.
package struct VectorIndexDescription: Sendable, Hashable {
  package var name: String
  package var dimension: Int
  package var metric: Metric
  /// The name of the vector field in a record.
  package var field: String
  package var cloud: String
  package var region: String
  package var tags: [String: String]
  package var isProtected: Bool

  /// The measure of similarity.
  package enum Metric: String, Sendable, Hashable, Codable, CaseIterable {
    case cosine, euclidean, dotproduct

    /// True if a smaller score is better.
    package var isDistance: Bool { self == .euclidean }
  }

  /// The name of the vector field in an index of plain vectors.
  package static let vectorsField = "_values"

  /// True if records are documents with a named vector field rather than plain vectors.
  package var holdsDocuments: Bool { field != Self.vectorsField }

  /// Creates a description, which the catalog checks when the index is created.
  package init(
    name: String,
    dimension: Int,
    metric: Metric,
    field: String = Self.vectorsField,
    cloud: String = "aws",
    region: String = "us-east-1",
    tags: [String: String] = [:],
    isProtected: Bool = false
  ) {
    self.name = name
    self.dimension = dimension
    self.metric = metric
    self.field = field
    self.cloud = cloud
    self.region = region
    self.tags = tags
    self.isProtected = isProtected
  }
}

/// A namespace of an index.
///
/// It exists from its creation or its first record until it is deleted.
package struct VectorNamespace: Sendable, Hashable {
  package var name: String
  /// The metadata fields that its creator declared; empty means all fields.
  package var filterableFields: [String]
  package var recordCount: Int
  /// The estimated size of the namespace's records in memory, in bytes.
  package var bytes: Int

  /// Creates a namespace; without counts it is empty.
  package init(
    name: String,
    filterableFields: [String] = [],
    recordCount: Int = 0,
    bytes: Int = 0
  ) {
    self.name = name
    self.filterableFields = filterableFields
    self.recordCount = recordCount
    self.bytes = bytes
  }
}
