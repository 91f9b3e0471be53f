import CKernels

/// Some rows of a namespace, column by column.
///
/// Rows come and go at the end only; one within can be replaced.
struct VectorChunk: Sendable {
  private(set) var ids: [String] = []
  private(set) var metadata: [[String: MetadataValue]] = []
  private(set) var values: [Float] = []
  /// The rows rounded to bytes, for a first look at a quarter of the memory.
  private(set) var codes: [Int8] = []
  private(set) var measures: [Measure] = []

  /// Rows of one chunk, which a write may have to copy while a query scans them.
  static let rowsMax = 512

  /// What a scan knows of a row before it looks at its values.
  struct Measure: Sendable {
    /// The row's length.
    var length: Float
    /// 1 / length, 0 for the zero vector: cosine is the dot product times both.
    var inverseLength: Float
    /// The factor that turns a code back into an approximate value.
    var scale: Float
    /// An upper bound of the length of what rounding lost.
    var error: Float

    /// Whether sums of squares like the row's overflow, or are too small to be precise.
    var isExtreme: Bool { Self.isExtreme(length) }

    static func isExtreme(_ length: Float) -> Bool { !(1e-15...1e15).contains(length) }

    /// The memory of a row beside its values and metadata; its codes are counted with the values.
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

  /// Puts another record in a row's place.
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

  /// A row as a record.
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
    // The sums above are rounded themselves, by less than this slack.
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
