/// A search for the documents whose vectors are nearest to a given one; part of a query.
///
/// Of the documents that the query's filter and orders leave, those count that have a vector of as
/// many dimensions at the field.
package struct FindNearest: Sendable, Hashable {
  /// The field that holds documents' vectors.
  package var field: FieldPath
  package var vector: [Double]
  package var measure: Measure
  /// How many documents are found at most.
  package var limit: Int
  /// The field of each result that gets its distance.
  package var resultField: FieldPath?
  /// The greatest distance; for a dot product the smallest.
  package var threshold: Double?

  /// How far apart vectors are.
  package enum Measure: Sendable, Hashable, CaseIterable {
    case euclidean, cosine, dotProduct
  }

  /// A search without a threshold.
  package init(
    field: FieldPath,
    vector: [Double],
    measure: Measure,
    limit: Int,
    resultField: FieldPath? = nil,
    threshold: Double? = nil
  ) {
    self.field = field
    self.vector = vector
    self.measure = measure
    self.limit = limit
    self.resultField = resultField
    self.threshold = threshold
  }

  /// The distance of a document's vector; nil if it does not count, or none is defined.
  ///
  /// A vector without length has no cosine.
  package func distance(of other: [Double]) -> Double? {
    guard other.count == vector.count else { return nil }
    var distance: Double
    switch measure {
    case .euclidean:
      distance = 0
      for (a, b) in zip(vector, other) { distance += (a - b) * (a - b) }
      distance = distance.squareRoot()
    case .dotProduct: distance = Self.dotProduct(vector, other)
    case .cosine:
      let lengths =
        Self.dotProduct(vector, vector).squareRoot() * Self.dotProduct(other, other).squareRoot()
      distance = 1 - Self.dotProduct(vector, other) / lengths
    }
    guard !distance.isNaN, threshold.map({ rank($0) < rank(distance) }) != true else { return nil }
    return distance
  }

  /// A number that is smaller for the distance of a nearer vector.
  package func rank(_ distance: Double) -> Double {
    measure == .dotProduct ? -distance : distance
  }

  private static func dotProduct(_ left: [Double], _ right: [Double]) -> Double {
    var sum = 0.0
    for (a, b) in zip(left, right) { sum += a * b }
    return sum
  }
}
