import DocumentModel
import Testing

@testable import DocumentStore

@Suite("NaN")
struct NaNTests {
  @Test("Every NaN is stored with the same bits, and given back with them")
  func oneBitPattern() async throws {
    let fixture = StoreFixture()
    let others = [
      Double(bitPattern: 0xFFF8_0000_0000_0000), Double(nan: 7, signaling: false),
      Double(nan: 1, signaling: true), .infinity - .infinity,
    ]
    for (index, number) in others.enumerated() {
      try await fixture.commit(set("c/d\(index)", ["n": .double(number)]))
      try await fixture.commit(set("c/i\(index)", ["n": .double(.infinity)]))
      let outcome = try await fixture.commit(
        set(
          "c/i\(index)",
          mask: [],
          transforms: [FieldTransform(path("n"), .increment(.double(-.infinity)))]
        )
      )

      for value in [
        try await fixture.get("c/d\(index)")?["n"], try await fixture.get("c/i\(index)")?["n"],
        outcome.results[0].transformResults[0],
      ] {
        guard case .double(let stored) = value else {
          Issue.record("\(String(describing: value)) is no double")
          continue
        }
        #expect(stored.bitPattern == Double.nan.bitPattern)
      }
    }
  }
}
