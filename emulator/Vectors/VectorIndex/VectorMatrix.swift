import CKernels

/// The vectors of one namespace in memory: rows in chunks, scanned exactly.
///
/// A copy shares its chunks until one of them is changed, so a query can scan a copy without
/// holding up writers. Rows are in no order; the last row fills the place of a removed one.
struct VectorMatrix: Sendable {
  let dimension: Int
  private(set) var count = 0
  private var chunks: [Chunk] = []
  private var rowOfID: [String: Int] = [:]

  /// An empty matrix of rows with `dimension` values.
  init(dimension: Int) {
    self.dimension = dimension
  }

  /// Rows that a write may have to copy while a query scans them.
  private static let chunkRows = 512

  private struct Chunk: Sendable {
    var ids: [String] = []
    var metadata: [[String: MetadataValue]] = []
    var values: [Float] = []
    /// 1 / length of each row, 0 for the zero vector: cosine is dot product times both.
    var inverseLengths: [Float] = []
  }

  /// Adds a record or replaces the one with its id.
  mutating func upsert(_ record: VectorRecord) {
    let inverse = Self.inverseLength(record.values)
    if let row = rowOfID[record.id] {
      let (chunk, place) = row.quotientAndRemainder(dividingBy: Self.chunkRows)
      chunks[chunk].metadata[place] = record.metadata
      chunks[chunk].values.replaceSubrange(
        place * dimension..<(place + 1) * dimension,
        with: record.values
      )
      chunks[chunk].inverseLengths[place] = inverse
      return
    }
    if count == chunks.count * Self.chunkRows { chunks.append(Chunk()) }
    rowOfID[record.id] = count
    chunks[chunks.count - 1].ids.append(record.id)
    chunks[chunks.count - 1].metadata.append(record.metadata)
    chunks[chunks.count - 1].values.append(contentsOf: record.values)
    chunks[chunks.count - 1].inverseLengths.append(inverse)
    count += 1
  }

  /// Removes a record; an unknown id changes nothing.
  mutating func remove(_ id: String) {
    guard let row = rowOfID.removeValue(forKey: id) else { return }
    let last = count - 1
    let moved = popLast()
    guard row != last else { return }
    let (chunk, place) = row.quotientAndRemainder(dividingBy: Self.chunkRows)
    chunks[chunk].ids[place] = moved.id
    chunks[chunk].metadata[place] = moved.metadata
    chunks[chunk].values.replaceSubrange(
      place * dimension..<(place + 1) * dimension,
      with: moved.values
    )
    chunks[chunk].inverseLengths[place] = Self.inverseLength(moved.values)
    rowOfID[moved.id] = row
  }

  /// The record with an id, or nil.
  func record(_ id: String) -> VectorRecord? {
    rowOfID[id].map { row in
      let (chunk, place) = row.quotientAndRemainder(dividingBy: Self.chunkRows)
      return record(chunk, place)
    }
  }

  /// All ids, in no order.
  var ids: Dictionary<String, Int>.Keys { rowOfID.keys }

  /// The ids of the records whose metadata passes, in no order.
  func ids(matching filter: MetadataFilter) -> [String] {
    chunks.flatMap { chunk in
      zip(chunk.ids, chunk.metadata).compactMap { filter.matches($1) ? $0 : nil }
    }
  }

  /// The best `limit` rows for a query of this dimension, best first; equal scores by id.
  ///
  /// The filter runs first; only rows that pass are scored. Exact: every such row is.
  func nearest(
    to query: [Float],
    metric: VectorIndexDescription.Metric,
    filter: MetadataFilter?,
    limit: Int
  ) -> [VectorMatch] {
    let queryInverse = Self.inverseLength(query)
    var best = BestRows(limit: limit, smallerIsBetter: metric.isDistance)
    for (chunkIndex, chunk) in chunks.enumerated() {
      chunk.values.withUnsafeBufferPointer { values in
        query.withUnsafeBufferPointer { query in
          guard let values = values.baseAddress, let query = query.baseAddress else { return }
          for place in chunk.ids.indices {
            if let filter, !filter.matches(chunk.metadata[place]) { continue }
            let row = values + place * dimension
            let score =
              switch metric {
              case .cosine:
                hearth_dot(query, row, dimension) * queryInverse * chunk.inverseLengths[place]
              case .dotproduct: hearth_dot(query, row, dimension)
              case .euclidean: hearth_squared_distance(query, row, dimension)
              }
            best.add(score: score, id: chunk.ids[place], chunk: chunkIndex, place: place)
          }
        }
      }
    }
    return best.sorted().map {
      VectorMatch(record: record($0.chunk, $0.place), score: $0.score)
    }
  }

  private func record(_ chunk: Int, _ place: Int) -> VectorRecord {
    let chunk = chunks[chunk]
    return VectorRecord(
      id: chunk.ids[place],
      values: Array(chunk.values[place * dimension..<(place + 1) * dimension]),
      metadata: chunk.metadata[place]
    )
  }

  private mutating func popLast() -> VectorRecord {
    count -= 1
    let last = chunks.count - 1
    let record = record(last, chunks[last].ids.count - 1)
    chunks[last].ids.removeLast()
    chunks[last].metadata.removeLast()
    chunks[last].values.removeLast(dimension)
    chunks[last].inverseLengths.removeLast()
    if chunks[last].ids.isEmpty { chunks.removeLast() }
    return record
  }

  private static func inverseLength(_ values: [Float]) -> Float {
    let squared = values.withUnsafeBufferPointer { buffer in
      buffer.baseAddress.map { hearth_dot($0, $0, buffer.count) } ?? 0
    }
    return squared > 0 ? 1 / squared.squareRoot() : 0
  }
}

/// The best rows seen so far, kept to about twice the number wanted.
private struct BestRows {
  struct Row {
    var score: Float
    var id: String
    var chunk: Int
    var place: Int
  }

  let limit: Int
  let smallerIsBetter: Bool
  private var rows: [Row] = []
  /// The score of the worst row that still counts, once there are enough.
  private var worst: Float?

  init(limit: Int, smallerIsBetter: Bool) {
    self.limit = limit
    self.smallerIsBetter = smallerIsBetter
  }

  mutating func add(score: Float, id: String, chunk: Int, place: Int) {
    if let worst, isBetter(worst, than: score) { return }
    rows.append(Row(score: score, id: id, chunk: chunk, place: place))
    if rows.count >= limit * 2 + 64 {
      rows = sorted()
      worst = rows.last?.score
    }
  }

  func sorted() -> [Row] {
    Array(
      rows.sorted { left, right in
        left.score == right.score ? left.id < right.id : isBetter(left.score, than: right.score)
      }.prefix(limit)
    )
  }

  private func isBetter(_ left: Float, than right: Float) -> Bool {
    smallerIsBetter ? left < right : left > right
  }
}
