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
  func measures() {
    #expect(search(.euclidean).distance(of: [0, 0]) == 5)
    #expect(search(.dotProduct).distance(of: [2, -1]) == 2)
    #expect(search(.cosine).distance(of: [6, 8]) == 0)
    #expect(search(.cosine).distance(of: [-3, -4]) == 2)
    #expect(search(.cosine).distance(of: [4, -3]) == 1)
    // What single precision would lose.
    #expect(search(.euclidean, [1e8 + 1]).distance(of: [1e8]) == 1)
  }

  @Test("A vector of other dimensions, or without a distance, does not count")
  func without() {
    for measure in FindNearest.Measure.allCases {
      #expect(search(measure).distance(of: [1]) == nil)
      #expect(search(measure).distance(of: [.nan, 1]) == nil)
    }
    #expect(search(.cosine).distance(of: [0, 0]) == nil)
    #expect(search(.cosine, [0, 0]).distance(of: [1, 1]) == nil)
    #expect(search(.euclidean).distance(of: [.infinity, 1]) == .infinity)
  }

  @Test("A threshold counts itself, and is the smallest dot product")
  func thresholds() {
    #expect(search(.euclidean, threshold: 5).distance(of: [0, 0]) == 5)
    #expect(search(.euclidean, threshold: 4.9).distance(of: [0, 0]) == nil)
    #expect(search(.dotProduct, threshold: 2).distance(of: [2, -1]) == 2)
    #expect(search(.dotProduct, threshold: 2.1).distance(of: [2, -1]) == nil)
  }
}
