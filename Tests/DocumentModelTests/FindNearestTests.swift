import DocumentModel
import Testing

@Suite("Distances of vectors")
struct FindNearestTests {
  private func search(
    _ measure: FindNearest.Measure,
    _ vector: [Double] = [3, 4],
    threshold: Double? = nil
  ) -> FindNearest {
    FindNearest(
      field: FieldPath(["v"]),
      vector: vector,
      measure: measure,
      limit: 1,
      threshold: threshold
    )
  }

  @Test("Each measure is exact in double precision")
  func measures() throws {
    #expect(try search(.euclidean).distance(of: [0, 0]) == 5)
    #expect(try search(.dotProduct).distance(of: [2, -1]) == 2)
    #expect(try search(.cosine).distance(of: [6, 8]) == 0)
    #expect(try search(.cosine).distance(of: [-3, -4]) == 2)
    #expect(try search(.cosine).distance(of: [4, -3]) == 1)
    // Single precision would lose this difference.
    #expect(try search(.euclidean, [1e8 + 1]).distance(of: [1e8]) == 1)
  }

  @Test("A vector of other dimensions, or without a distance, does not count")
  func without() throws {
    for measure in FindNearest.Measure.allCases {
      #expect(try search(measure).distance(of: [1]) == nil)
      #expect(try search(measure).distance(of: [.nan, 1]) == nil)
    }
    #expect(try search(.euclidean).distance(of: [.infinity, 1]) == .infinity)
  }

  @Test("The cosine of a vector without length is refused, as in production")
  func zeroVectors() {
    #expect(throws: FindNearest.ZeroVectorError.self) {
      try search(.cosine).distance(of: [0, 0])
    }
    #expect(throws: FindNearest.ZeroVectorError.self) {
      try search(.cosine, [0, 0]).distance(of: [1, 1])
    }
  }

  @Test(
    "The cosine of huge and of tiny vectors is that of their directions",
    arguments: [1e-200, 1e200]
  )
  func extremes(scale: Double) throws {
    let vector = [3 * scale, 4 * scale]
    #expect(try search(.cosine, vector).distance(of: [3, 4]).map { abs($0) < 1e-15 } == true)
    #expect(try search(.cosine, [3, 4]).distance(of: vector).map { abs($0) < 1e-15 } == true)
    #expect(try search(.cosine, [-4, 3]).distance(of: vector).map { abs($0 - 1) < 1e-15 } == true)
  }

  @Test("The numbers that do not fill a step of the sum count, too", arguments: 1...9)
  func everyLength(count: Int) throws {
    let vector = (1...count).map(Double.init)
    let squares = vector.reduce(0) { $0 + $1 * $1 }
    #expect(try search(.dotProduct, vector).distance(of: vector) == squares)
    let zeros = Array(repeating: 0.0, count: count)
    #expect(try search(.euclidean, vector).distance(of: zeros) == squares.squareRoot())
  }

  @Test("A threshold counts itself, and is the smallest dot product")
  func thresholds() throws {
    #expect(try search(.euclidean, threshold: 5).distance(of: [0, 0]) == 5)
    #expect(try search(.euclidean, threshold: 4.9).distance(of: [0, 0]) == nil)
    #expect(try search(.dotProduct, threshold: 2).distance(of: [2, -1]) == 2)
    #expect(try search(.dotProduct, threshold: 2.1).distance(of: [2, -1]) == nil)
  }
}
