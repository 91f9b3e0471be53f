/// An index as its creator described it.
package struct VectorIndexDescription: Sendable, Hashable {
  package var name: String
  package var dimension: Int
  package var metric: Metric
  /// The name of the vector among a record's fields.
  package var field: String
  package var cloud: String
  package var region: String
  package var tags: [String: String]
  package var isProtected: Bool

  /// How similarity is measured.
  package enum Metric: String, Sendable, Hashable, Codable, CaseIterable {
    case cosine, euclidean, dotproduct

    /// Whether a smaller score is the better one.
    package var isDistance: Bool { self == .euclidean }
  }

  /// The vector's name in an index whose records are plain vectors.
  package static let vectorsField = "_values"

  /// Whether records are documents with a named vector field, and not plain vectors.
  package var holdsDocuments: Bool { field != Self.vectorsField }

  /// A description; the catalogue checks it on creation.
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

/// A namespace of an index; it exists from its creation or first record until it is deleted.
package struct VectorNamespace: Sendable, Hashable {
  package var name: String
  /// The metadata fields that its creator declared; empty means all.
  package var filterableFields: [String]
  package var recordCount: Int
  /// The estimated size of its records in memory, in bytes.
  package var bytes: Int

  /// A namespace; without counts, an empty one.
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
