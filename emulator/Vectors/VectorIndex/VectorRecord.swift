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
