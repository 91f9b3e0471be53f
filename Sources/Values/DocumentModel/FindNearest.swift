/// A search for the documents whose vectors are nearest to a given vector; part of a query.
///
/// The search covers documents that match the query's filter and orders. Their vector at `field`
/// must have as many dimensions as `vector`.
package struct FindNearest: Sendable, Hashable {
  /// The field that holds documents' vectors.
  package var field: FieldPath
  package var vector: [Double]
  package var measure: Measure
  /// The maximum number of documents found.
  package var limit: Int
  /// The name of a field added to each result for its distance; a plain name, not a path.
  package var resultField: String?
  /// The greatest accepted distance; for a dot product, the smallest.
  package var threshold: Double?

  /// The distance measure between two vectors.
  package enum Measure: Sendable, Hashable, CaseIterable {
    case euclidean, cosine, dotProduct
  }

  package init(
    field: FieldPath,
    vector: [Double],
    measure: Measure,
    limit: Int,
    resultField: String? = nil,
    threshold: Double? = nil
  ) {
    self.field = field
    self.vector = vector
    self.measure = measure
    self.limit = limit
    self.resultField = resultField
    self.threshold = threshold
  }

  /// An error for a vector of length zero, which has no angle to other vectors.
  package struct ZeroVectorError: Error {}

  /// Returns the distance of a document's vector.
  ///
  /// Nil if the number of dimensions differs, the distance is NaN, or the distance is beyond the
  /// threshold. Throws for the cosine measure if either vector has length zero.
  package func distance(of other: [Double]) throws(ZeroVectorError) -> Double? {
    guard other.count == vector.count else { return nil }
    let distance: Double
    switch measure {
    case .euclidean: distance = sum(other) { ($0 - $1) * ($0 - $1) }.squareRoot()
    case .dotProduct: distance = sum(other) { $0 * $1 }
    case .cosine: distance = try 1 - cosine(of: other)
    }
    guard !distance.isNaN, threshold.map({ rank($0) < rank(distance) }) != true else { return nil }
    return distance
  }

  /// The squared lengths at which overflow or underflow cannot have cost any digits.
  ///
  /// Vectors with other squared lengths are scaled first.
  private static let exactSquares = 1e-250...1e250

  private func cosine(of other: [Double]) throws(ZeroVectorError) -> Double {
    let squares = (
      own: sum(other) { own, _ in own * own }, other: sum(other) { _, other in other * other }
    )
    if Self.exactSquares.contains(squares.own), Self.exactSquares.contains(squares.other) {
      return sum(other) { $0 * $1 } / (squares.own.squareRoot() * squares.other.squareRoot())
    }
    var scaled = self
    scaled.vector = try Self.scaled(vector)
    let direction = try Self.scaled(other)
    let lengths =
      scaled.sum(direction) { own, _ in own * own }.squareRoot()
      * scaled.sum(direction) { _, other in other * other }.squareRoot()
    return scaled.sum(direction) { $0 * $1 } / lengths
  }

  /// Returns a vector of the same direction whose largest magnitude is 1.
  private static func scaled(_ vector: [Double]) throws(ZeroVectorError) -> [Double] {
    let greatest = vector.reduce(0) { max($0, $1.magnitude) }
    guard greatest != 0 else { throw ZeroVectorError() }
    return vector.map { $0 / greatest }
  }

  /// Returns a sort key for a distance; the nearer the vector, the smaller the key.
  package func rank(_ distance: Double) -> Double {
    measure == .dotProduct ? -distance : distance
  }

  /// Returns the sum of `term` over the elements of both vectors, four elements at a time.
  @inline(__always)
  private func sum(
    _ other: [Double],
    _ term: (_ own: SIMD4<Double>, _ other: SIMD4<Double>) -> SIMD4<Double>
  ) -> Double {
    vector.withUnsafeBytes { own in
      other.withUnsafeBytes { other in
        let stride = MemoryLayout<SIMD4<Double>>.stride
        var sums = SIMD4<Double>()
        var index = 0
        while index + stride <= own.count {
          sums += term(
            own.loadUnaligned(fromByteOffset: index, as: SIMD4<Double>.self),
            other.loadUnaligned(fromByteOffset: index, as: SIMD4<Double>.self)
          )
          index += stride
        }
        var rest = (own: SIMD4<Double>(), other: SIMD4<Double>())
        for place in 0..<(own.count - index) / MemoryLayout<Double>.stride {
          let offset = index + place * MemoryLayout<Double>.stride
          rest.own[place] = own.load(fromByteOffset: offset, as: Double.self)
          rest.other[place] = other.load(fromByteOffset: offset, as: Double.self)
        }
        return (sums + term(rest.own, rest.other)).sum()
      }
    }
  }
}
