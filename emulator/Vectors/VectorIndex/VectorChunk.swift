import CKernels

/// A group of rows of a namespace, stored column by column.
///
/// Rows are added and removed only at the end. Any row can be replaced.
struct VectorChunk: Sendable {
  private(set) var ids: [String] = []
  private(set) var metadata: [[String: MetadataValue]] = []
  private(set) var values: [Float] = []
  /// The rows quantized to bytes, for a first pass with a quarter of the memory traffic.
  private(set) var codes: [Int8] = []
  private(set) var measures: [Measure] = []

  /// The maximum number of rows in one chunk, which a write may copy while a query scans it.
  static let rowsMax = 512

  /// The properties of a row that a scan uses before it reads the row's values.
  struct Measure: Sendable {
    /// The length of the row, rounded up.
    var length: Float
    /// 1 / length, or 0 for the zero vector.
    ///
    /// The cosine is the dot product times the inverse lengths of both vectors.
    var inverseLength: Float
    /// The factor that converts a code to an approximate value.
    var scale: Float
    /// An upper bound of the length of the row's rounding error.
    var error: Float

    /// True if sums of squares of such values overflow or are too small to be precise.
    var isExtreme: Bool { Self.isExtreme(length) }

    static func isExtreme(_ length: Float) -> Bool { !(1e-15...1e15).contains(length) }

    /// The memory of a row apart from its values, codes and metadata.
    static let bytes = MemoryLayout<Measure>.stride + 64
  }

  /// Adds a row at the end.
  mutating func append(_ record: VectorRecord) {
    ids.append(record.id)
    metadata.append(record.metadata)
    values.append(contentsOf: record.values)
    let rounded = Self.rounded(record.values)
    codes.append(contentsOf: rounded.codes)
    measures.append(rounded.measure)
  }

  /// Replaces a row with another record.
  mutating func replace(_ place: Int, with record: VectorRecord) {
    let dimension = record.values.count
    let range = place * dimension..<(place + 1) * dimension
    let rounded = Self.rounded(record.values)
    ids[place] = record.id
    metadata[place] = record.metadata
    values.replaceSubrange(range, with: record.values)
    codes.replaceSubrange(range, with: rounded.codes)
    measures[place] = rounded.measure
  }

  /// Removes the last row.
  mutating func removeLast(dimension: Int) {
    ids.removeLast()
    metadata.removeLast()
    values.removeLast(dimension)
    codes.removeLast(dimension)
    measures.removeLast()
  }

  /// Returns a row as a record.
  func record(_ place: Int, dimension: Int, withValues: Bool = true) -> VectorRecord {
    let range = place * dimension..<(place + 1) * dimension
    return VectorRecord(
      id: ids[place],
      values: withValues ? Array(values[range]) : [],
      metadata: metadata[place]
    )
  }

  private static func rounded(_ values: [Float]) -> (codes: [Int8], measure: Measure) {
    var codes = [Int8](repeating: 0, count: values.count)
    var squaredError: Float = 0
    let scale = hearth_quantise(values, values.count, &codes, &squaredError)
    let length = hearth_dot(values, values, values.count).squareRoot()
    // The slack covers the rounding errors of the sums above.
    let slack = 1 + Float(values.count + 16) * .ulpOfOne
    let error = squaredError.squareRoot() * slack + length * 2 * .ulpOfOne
    let measure = Measure(
      length: length * slack,
      inverseLength: length > 0 ? 1 / length : 0,
      scale: scale,
      error: error
    )
    return (codes, measure)
  }
}
