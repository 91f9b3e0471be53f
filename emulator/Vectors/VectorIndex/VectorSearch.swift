import CKernels

/// A snapshot of the rows of a namespace, to be ranked or listed.
///
/// The search is exact: every row that matches the filter is either scored or ruled out by a bound
/// on its score.
struct VectorSearch: Sendable {
  let dimension: Int
  let chunks: [VectorChunk]
  let rows: MetadataIndex.Selection
  let filter: MetadataFilter?

  /// The number of rows from which a first pass over the codes is worthwhile.
  private static let roundedRowsMin = 2048
  /// The minimum size of codes per task, in bytes: about a millisecond of work for one core.
  ///
  /// Less work is not worth a task.
  private static let bytesPerTask = 32 << 20
  /// The maximum number of tasks of one search, which leaves capacity for other searches.
  private static let tasksMax = 8

  /// Returns the ids of the matching rows, in no order.
  func ids() -> [String] {
    passingRows().map { row in
      let (chunk, place) = VectorMatrix.place(Int(row))
      return chunks[chunk].ids[place]
    }
  }

  /// Calls `body` for the records of the matching rows, ordered by id.
  func forEachRecord(_ body: (VectorRecord) throws -> Void) rethrows {
    let places = passingRows().map { VectorMatrix.place(Int($0)) }
    for (chunk, place) in places.sorted(by: { id($0) < id($1) }) {
      try body(chunks[chunk].record(place, dimension: dimension))
    }
  }

  private func id(_ row: (chunk: Int, place: Int)) -> String { chunks[row.chunk].ids[row.place] }

  /// Returns the best `limit` rows for a query of this dimension.
  ///
  /// The best row comes first; rows with equal scores are ordered by id.
  func nearest(
    to query: [Float],
    metric: VectorIndexDescription.Metric,
    limit: Int,
    withValues: Bool
  ) async -> [VectorMatch] {
    let scorer = RowScorer(query, metric: metric)
    var candidates = passingRows()
    if candidates.count >= Self.roundedRowsMin, limit <= candidates.count / 8 {
      candidates = await promising(candidates, scorer, limit: limit)
    }
    var best = BestRows(limit: limit, smallerIsBetter: metric.isDistance)
    for row in candidates {
      let (chunk, place) = VectorMatrix.place(Int(row))
      let score = chunks[chunk].values.withUnsafeBufferPointer { values in
        scorer.score(values, place: place, measure: chunks[chunk].measures[place])
      }
      best.add(score: score, id: chunks[chunk].ids[place], row: Int(row))
    }
    return best.sorted().map { row in
      let (chunk, place) = VectorMatrix.place(row.row)
      let record = chunks[chunk].record(place, dimension: dimension, withValues: withValues)
      return VectorMatch(record: record, score: row.score)
    }
  }

  /// Returns the rows that match the filter, ascending.
  private func passingRows() -> [Int32] {
    switch rows {
    case .rows(let rows, isExact: true): return rows
    case .rows(let rows, isExact: false): return rows.filter(passes)
    case .all:
      let count = chunks.isEmpty ? 0 : (chunks.count - 1) * VectorChunk.rowsMax
      let all = Int32(0)..<Int32(count + (chunks.last?.ids.count ?? 0))
      return filter == nil ? Array(all) : all.filter(passes)
    }
  }

  private func passes(_ row: Int32) -> Bool {
    guard let filter else { return true }
    let (chunk, place) = VectorMatrix.place(Int(row))
    return filter.matches(chunks[chunk].metadata[place])
  }

  /// Returns the rows whose score may be among the best `limit`, according to their codes.
  ///
  /// A row's code bounds its score from both sides. At least `limit` rows reach the `limit`th best
  /// lower bound. A row whose upper bound is below it cannot be among the best.
  private func promising(_ rows: [Int32], _ scorer: RowScorer, limit: Int) async -> [Int32] {
    let tasks = max(1, min(Self.tasksMax, rows.count * dimension / Self.bytesPerTask))
    let size = (rows.count + tasks - 1) / tasks
    let parts = stride(from: 0, to: rows.count, by: size).map {
      rows[$0..<min($0 + size, rows.count)]
    }
    let bounds: [RowBounds]
    if parts.count == 1 {
      bounds = [self.bounds(of: parts[0], scorer, limit: limit)]
    } else {
      bounds = await withTaskGroup(of: RowBounds.self) { group in
        for part in parts { group.addTask { self.bounds(of: part, scorer, limit: limit) } }
        return await group.reduce(into: []) { $0.append($1) }
      }
    }
    var best = LargestValues(limit: limit)
    for part in bounds { for bound in part.lowest.values { best.add(bound) } }
    let least = best.least
    return bounds.flatMap { part in
      // The comparison is written so that a row with a NaN bound is kept.
      zip(part.rows, part.upper).compactMap { $1 < least ? nil : $0 }
    }
  }

  private struct RowBounds: Sendable {
    var rows: ArraySlice<Int32>
    var upper: [Float]
    var lowest: LargestValues
  }

  private func bounds(
    of rows: ArraySlice<Int32>,
    _ scorer: RowScorer,
    limit: Int
  ) -> RowBounds {
    var result = RowBounds(rows: rows, upper: [], lowest: LargestValues(limit: limit))
    result.upper.reserveCapacity(rows.count)
    var index = rows.startIndex
    while index < rows.endIndex {
      // The rows are processed chunk by chunk, because accessing a chunk's arrays has a cost.
      let chunkIndex = VectorMatrix.place(Int(rows[index])).chunk
      let first = chunkIndex * VectorChunk.rowsMax
      let chunk = chunks[chunkIndex]
      chunk.codes.withUnsafeBufferPointer { codes in
        while index < rows.endIndex, Int(rows[index]) < first + VectorChunk.rowsMax {
          let place = Int(rows[index]) - first
          let (lower, upper) = scorer.bounds(codes, place: place, measure: chunk.measures[place])
          result.upper.append(upper)
          if lower.isFinite { result.lowest.add(lower) }
          index += 1
        }
      }
    }
    return result
  }
}
