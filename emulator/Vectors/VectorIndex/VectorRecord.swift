/// A stored vector with its id and metadata.
package struct VectorRecord: Sendable, Hashable {
  package var id: String
  package var values: [Float]
  package var metadata: [String: MetadataValue]

  /// Creates a record; its dimension and metadata are checked when it is written.
  package init(id: String, values: [Float], metadata: [String: MetadataValue] = [:]) {
    self.id = id
    self.values = values
    self.metadata = metadata
  }
}

/// A metadata value that Pinecone allows: neither null nor nested.
package enum MetadataValue: Sendable, Hashable {
  case string(String)
  case number(Double)
  case boolean(Bool)
  case strings([String])
}

/// A result of a query.
package struct VectorMatch: Sendable, Hashable {
  package var record: VectorRecord
  package var score: Float

  /// Creates a match from a record and its score.
  package init(record: VectorRecord, score: Float) {
    self.record = record
    self.score = score
  }
}
