import CKernels

/// A query that is prepared for comparison with rows and with their codes.
struct RowScorer: Sendable {
  private let query: [Float]
  private let metric: VectorIndexDescription.Metric
  private let length: Float
  private let inverseLength: Float
  /// The query quantized to integers.
  ///
  /// `scale` is the factor that converts a code to a value.
  private let codes: [Int16]
  private let scale: Float
  /// An upper bound of the length of the query's rounding error.
  private let error: Float
  /// The maximum error of a sum of `dimension` products, relative to the lengths of the factors.
  private let slack: Float
  private let isExtreme: Bool

  /// Creates a scorer for rows of the query's dimension.
  init(_ query: [Float], metric: VectorIndexDescription.Metric) {
    self.query = query
    self.metric = metric
    let squared = hearth_dot(query, query, query.count)
    slack = Float(query.count + 16) * .ulpOfOne
    length = squared.squareRoot() * (1 + slack)
    isExtreme = VectorChunk.Measure.isExtreme(length)
    inverseLength = squared > 0 ? 1 / squared.squareRoot() : 0
    // The codes are as wide as the sum of their products with bytes allows. The bounds then depend
    // on little more than the rows' own rounding.
    let widest = min(Int(Int16.max), Int(Int32.max) / (127 * max(query.count, 1)))
    let largest = query.reduce(0) { max($0, abs($1)) }
    let scale = largest > 1e-30 && largest.isFinite ? Double(largest) / Double(widest) : 0
    var lost = 0.0
    codes = query.map { value in
      let code = scale > 0 ? (Double(value) / scale).rounded() : 0
      let difference = Double(value) - code * scale
      lost += difference * difference
      return Int16(clamping: Int(code))
    }
    self.scale = Float(scale)
    error = Float(lost.squareRoot()) * (1 + slack) + length * .ulpOfOne
  }

  /// Returns the score of a row as clients receive it.
  func score(
    _ values: UnsafeBufferPointer<Float>,
    place: Int,
    measure: VectorChunk.Measure
  ) -> Float {
    precondition((place + 1) * query.count <= values.count, "a row has the query's dimension")
    guard let values = values.baseAddress else { return 0 }
    let row = values + place * query.count
    if isExtreme || measure.isExtreme { return exactScore(row) }
    return switch metric {
    case .cosine: hearth_dot(query, row, query.count) * inverseLength * measure.inverseLength
    case .dotproduct: hearth_dot(query, row, query.count)
    case .euclidean: hearth_squared_distance(query, row, query.count)
    }
  }

  /// Returns the score if squares of `Float` overflow or underflow; the result is always finite.
  private func exactScore(_ row: UnsafePointer<Float>) -> Float {
    var dot = 0.0
    var lengths = (query: 0.0, row: 0.0)
    var distance = 0.0
    for (index, value) in query.enumerated() {
      let (left, right) = (Double(value), Double(row[index]))
      dot += left * right
      lengths.query += left * left
      lengths.row += right * right
      distance += (left - right) * (left - right)
    }
    let score =
      switch metric {
      case .cosine:
        lengths.query > 0 && lengths.row > 0
          ? dot / (lengths.query.squareRoot() * lengths.row.squareRoot()) : 0
      case .dotproduct: dot
      case .euclidean: distance
      }
    let most = Double(Float.greatestFiniteMagnitude)
    return Float(min(max(score, -most), most))
  }

  /// Returns bounds of a row's score computed from its codes; for distances the score is negated.
  ///
  /// Let q and r be the query and the row, and q' and r' the vectors that their codes represent.
  /// Then q·r − q'·r' equals q·(r − r') + (q − q')·r'. The product of two vectors is at most the
  /// product of their lengths.
  func bounds(
    _ rowCodes: UnsafeBufferPointer<Int8>,
    place: Int,
    measure: VectorChunk.Measure
  ) -> (lower: Float, upper: Float) {
    guard let base = rowCodes.baseAddress, !isExtreme, !measure.isExtreme else {
      return (-.infinity, .infinity)
    }
    precondition((place + 1) * codes.count <= rowCodes.count, "a row has the query's dimension")
    let sum = hearth_dot_int8(base + place * codes.count, codes, codes.count)
    let dot = Float(sum) * (scale * measure.scale)
    var margin = length * measure.error + error * (measure.length + measure.error)
    margin = (margin + 2 * slack * length * measure.length) * 1.01
    switch metric {
    case .dotproduct: return (dot - margin, dot + margin)
    case .cosine:
      let factor = inverseLength * measure.inverseLength
      return ((dot - margin) * factor, (dot + margin) * factor)
    case .euclidean:
      let sum = length + measure.length
      let distance = length * length + measure.length * measure.length - 2 * dot
      let reach = 2 * margin + 4 * slack * sum * sum
      return (-distance - reach, -distance + reach)
    }
  }
}

/// A collection that keeps the largest values added, at most `limit` of them.
struct LargestValues: Sendable {
  private let limit: Int
  /// A min-heap: no value is larger than its children at twice its index plus one and plus two.
  private(set) var values: [Float] = []

  init(limit: Int) {
    self.limit = limit
  }

  /// The smallest value kept; negative infinity until there are `limit` values.
  var least: Float { values.count < limit ? -.infinity : values.first ?? -.infinity }

  mutating func add(_ value: Float) {
    if values.count < limit {
      values.append(value)
      rise()
    } else if let first = values.first, value > first {
      values[0] = value
      sink()
    }
  }

  private mutating func rise() {
    var place = values.count - 1
    while place > 0, values[(place - 1) / 2] > values[place] {
      values.swapAt(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
  }

  private mutating func sink() {
    var place = 0
    while true {
      var smallest = place
      for child in [2 * place + 1, 2 * place + 2]
      where child < values.count && values[child] < values[smallest] { smallest = child }
      if smallest == place { return }
      values.swapAt(place, smallest)
      place = smallest
    }
  }
}

/// A collection that keeps the best rows, up to about twice the number wanted.
struct BestRows {
  struct Row {
    var score: Float
    var id: String
    var row: Int
  }

  private let limit: Int
  private let smallerIsBetter: Bool
  private var rows: [Row] = []
  /// The score of the last row that still counts; nil until there are enough rows.
  private var worst: Float?

  init(limit: Int, smallerIsBetter: Bool) {
    self.limit = limit
    self.smallerIsBetter = smallerIsBetter
  }

  mutating func add(score: Float, id: String, row: Int) {
    if let worst, isBetter(worst, than: score) { return }
    rows.append(Row(score: score, id: id, row: row))
    if rows.count >= limit * 2 + 64 {
      rows = sorted()
      worst = rows.last?.score
    }
  }

  /// Returns the best rows, best first; rows with equal scores are ordered by id.
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
