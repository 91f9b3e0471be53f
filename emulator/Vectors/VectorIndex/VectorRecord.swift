/// One stored vector.
package struct VectorRecord: Sendable, Hashable {
  package var id: String
  package var values: [Float]
  package var metadata: [String: MetadataValue]

  /// A record; its dimension and metadata are checked when it is written.
  package init(id: String, values: [Float], metadata: [String: MetadataValue] = [:]) {
    self.id = id
    self.values = values
    self.metadata = metadata
  }
}

/// What Pinecone allows as metadata: no null, no nesting.
package enum MetadataValue: Sendable, Hashable {
  case string(String)
  case number(Double)
  case boolean(Bool)
  case strings([String])
}

/// A condition on metadata, in Pinecone's filter language.
package indirect enum MetadataFilter: Sendable, Hashable {
  case and([MetadataFilter])
  case or([MetadataFilter])
  case equal(String, MetadataValue)
  case notEqual(String, MetadataValue)
  case compare(String, Comparison, Double)
  case isIn(String, [MetadataValue])
  case isNotIn(String, [MetadataValue])
  case exists(String, Bool)

  /// The order comparisons; they hold for numbers only.
  package enum Comparison: Sendable, Hashable {
    case greater, greaterOrEqual, less, lessOrEqual
  }

  /// Whether a record with this metadata passes.
  ///
  /// A list matches a positive operator when one of its elements does, and `$ne` and `$nin` when
  /// none does. A missing key passes `$ne` and `$nin`.
  package func matches(_ metadata: [String: MetadataValue]) -> Bool {
    switch self {
    case .and(let filters): filters.allSatisfy { $0.matches(metadata) }
    case .or(let filters): filters.contains { $0.matches(metadata) }
    case .equal(let key, let value): Self.contains(metadata[key], value)
    case .notEqual(let key, let value): !Self.contains(metadata[key], value)
    case .isIn(let key, let values): values.contains { Self.contains(metadata[key], $0) }
    case .isNotIn(let key, let values): !values.contains { Self.contains(metadata[key], $0) }
    case .exists(let key, let expected): (metadata[key] != nil) == expected
    case .compare(let key, let comparison, let operand):
      if case .number(let number) = metadata[key] {
        switch comparison {
        case .greater: number > operand
        case .greaterOrEqual: number >= operand
        case .less: number < operand
        case .lessOrEqual: number <= operand
        }
      } else {
        false
      }
    }
  }

  private static func contains(_ stored: MetadataValue?, _ value: MetadataValue) -> Bool {
    if case .strings(let elements) = stored, case .string(let text) = value {
      return elements.contains(text)
    }
    return stored == value
  }
}

/// An index as its creator described it.
package struct VectorIndexDescription: Sendable, Hashable {
  package var name: String
  package var dimension: Int
  package var metric: Metric
  package var tags: [String: String]
  package var isProtected: Bool

  /// How similarity is measured.
  package enum Metric: String, Sendable, Hashable, Codable, CaseIterable {
    case cosine, euclidean, dotproduct

    /// Whether a smaller score is the better one.
    package var isDistance: Bool { self == .euclidean }
  }

  /// A description; the index checks it on creation.
  package init(
    name: String,
    dimension: Int,
    metric: Metric,
    tags: [String: String] = [:],
    isProtected: Bool = false
  ) {
    self.name = name
    self.dimension = dimension
    self.metric = metric
    self.tags = tags
    self.isProtected = isProtected
  }
}

/// One result of a query.
package struct VectorMatch: Sendable, Hashable {
  package var record: VectorRecord
  package var score: Float

  /// A record with its score.
  package init(record: VectorRecord, score: Float) {
    self.record = record
    self.score = score
  }
}
