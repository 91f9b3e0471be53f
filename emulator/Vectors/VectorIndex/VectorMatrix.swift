/// The vectors of one namespace in memory: rows in chunks, and the row of each id.
///
/// A search uses a copy that shares the chunks until one of them is changed, so a query can scan
/// without blocking writers. Rows have no order. The last row takes the place of a removed row.
struct VectorMatrix: Sendable {
  let dimension: Int
  private(set) var count = 0
  /// The estimated size of the rows in memory, in bytes.
  private(set) var bytes = 0
  private var chunks: [VectorChunk] = []
  private var rowOfID: [String: Int] = [:]
  private var index = MetadataIndex()

  /// Creates an empty matrix of rows with `dimension` values.
  init(dimension: Int) {
    self.dimension = dimension
  }

  /// The number of rows from which an index is faster than reading the metadata of each row.
  private static let indexedRowsMin = 512

  /// Adds a record or replaces the record with its id.
  mutating func upsert(_ record: VectorRecord) {
    bytes += estimatedBytes(record.id, record.metadata)
    if let row = rowOfID[record.id] {
      let (chunk, place) = Self.place(row)
      let old = chunks[chunk].metadata[place]
      bytes -= estimatedBytes(record.id, old)
      index.replace(old, with: record.metadata, row: row)
      chunks[chunk].replace(place, with: record)
      return
    }
    if count == chunks.count * VectorChunk.rowsMax { chunks.append(VectorChunk()) }
    chunks[chunks.count - 1].append(record)
    index.append(record.metadata, row: count)
    rowOfID[record.id] = count
    count += 1
  }

  /// Removes a record; an unknown id changes nothing.
  mutating func remove(_ id: String) {
    guard let row = rowOfID.removeValue(forKey: id) else { return }
    let (chunk, place) = Self.place(row)
    let removed = chunks[chunk].metadata[place]
    bytes -= estimatedBytes(id, removed)
    let last = chunks.count - 1
    let moved = chunks[last].record(chunks[last].ids.count - 1, dimension: dimension)
    count -= 1
    chunks[last].removeLast(dimension: dimension)
    if chunks[last].ids.isEmpty { chunks.removeLast() }
    index.removeLast(moved.metadata, row: count)
    guard row != count else { return }
    index.replace(removed, with: moved.metadata, row: row)
    chunks[chunk].replace(place, with: moved)
    rowOfID[moved.id] = row
  }

  /// Returns the record with an id; nil if there is none.
  func record(_ id: String) -> VectorRecord? {
    rowOfID[id].map { row in
      let (chunk, place) = Self.place(row)
      return chunks[chunk].record(place, dimension: dimension)
    }
  }

  /// All ids, in no order.
  var ids: [String] { chunks.flatMap(\.ids) }

  /// Returns a search of the rows that can match a filter.
  ///
  /// Keys of the filter that are not indexed yet are indexed first, if the matrix has enough rows.
  mutating func search(_ filter: MetadataFilter?) -> VectorSearch {
    var rows = MetadataIndex.Selection.all
    if let filter, count >= Self.indexedRowsMin {
      for key in index.missingKeys(filter) {
        index.add(key, rows: chunks.lazy.flatMap(\.metadata))
      }
      rows = index.select(filter)
    }
    return VectorSearch(dimension: dimension, chunks: chunks, rows: rows, filter: filter)
  }

  /// A search of all rows, without the index, which writers then need not copy.
  var allRows: VectorSearch {
    VectorSearch(dimension: dimension, chunks: chunks, rows: .all, filter: nil)
  }

  static func place(_ row: Int) -> (chunk: Int, place: Int) {
    let (chunk, place) = row.quotientAndRemainder(dividingBy: VectorChunk.rowsMax)
    return (chunk, place)
  }

  /// Returns the memory of a row.
  ///
  /// It is four bytes per value, one byte per code, and the size of the id and the metadata.
  private func estimatedBytes(_ id: String, _ metadata: [String: MetadataValue]) -> Int {
    dimension * 5 + VectorChunk.Measure.bytes + id.utf8.count * 2 + metadata.estimatedBytes
  }
}

extension [String: MetadataValue] {
  /// The size of keys and values as Pinecone counts them for the limit on a record's metadata.
  package var contentBytes: Int {
    reduce(0) { total, field in
      let value =
        switch field.value {
        case .string(let text): text.utf8.count
        case .number: 8
        case .boolean: 1
        case .strings(let texts): texts.reduce(0) { $0 + $1.utf8.count }
        }
      return total + field.key.utf8.count + value
    }
  }

  /// The approximate size of the dictionary in memory, in bytes.
  fileprivate var estimatedBytes: Int { contentBytes + 64 + count * 64 }
}
