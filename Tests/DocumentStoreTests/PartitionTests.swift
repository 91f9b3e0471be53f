import DocumentModel
import Identity
import TestSupport
import Testing

@testable import DocumentStore

@Suite("Partitions of a collection group")
struct PartitionTests {
  private static let group = Query(database: database, collectionID: "c", allDescendants: true)

  private static func points(
    _ fixture: StoreFixture,
    count: Int,
    pageSize: Int = 0,
    between: () async throws -> Void = {}
  ) async throws -> [DocumentName] {
    var points: [DocumentName] = []
    var token: String?
    repeat {
      let page = try await fixture.store.partition(
        group,
        count: count,
        pageSize: pageSize,
        pageToken: token,
        readTime: nil,
        auth: .admin
      )
      points += page.points
      token = page.nextPageToken
      try await between()
    } while token != nil
    return points
  }

  @Test("Parts of many collections are of one size, whatever size the steps of the reading have")
  func sizes() async throws {
    let fixture = StoreFixture(configuration: .init(queryCandidatesMax: 2))
    var names: [DocumentName] = []
    for (number, parent) in ["c", "d/x/c", "d/y/c", "z/1/c/2/c"].enumerated() {
      for id in 0..<(25 * (number + 1)) {
        try await fixture.commit(set("\(parent)/\(id)"))
        names.append(name("\(parent)/\(id)"))
      }
      try await fixture.commit(set("other/\(number)"))
    }
    names.sort()

    for count in [16, 40, 99] {
      let expected = (1...count).map { names[$0 * names.count / (count + 1)] }
      #expect(try await Self.points(fixture, count: count) == expected)
    }
    #expect(try await Self.points(fixture, count: 1000) == Array(names.dropFirst()))
  }

  @Test("Many documents are sampled, and still the parts differ by little")
  func sampled() async throws {
    let fixture = StoreFixture()
    let ids = (0..<2000).map { "\($0 + 1000)" }
    for start in stride(from: 0, to: 2000, by: 500) {
      let writes = ids[start..<start + 500].map { set("c/\($0)") }
      _ = try await fixture.store.commit(writes, database: database, transaction: nil, auth: .admin)
    }

    let points = try await Self.points(fixture, count: 4)
    #expect(points == points.sorted() && points.count == 4)
    let places = [0] + points.compactMap { ids.firstIndex(of: $0.id) } + [2000]
    for (from, to) in zip(places, places.dropFirst()) { #expect((350...450).contains(to - from)) }
  }

  @Test("All pages show the moment of the first, whatever is written in between")
  func pages() async throws {
    var generator = SeededGenerator.forTest()
    let fixture = StoreFixture(configuration: .init(queryCandidatesMax: 3))
    for id in 0..<40 { try await fixture.commit(set("c/\(100 + id)")) }
    let expected = try await Self.points(fixture, count: 13)
    #expect(expected.count == 13)

    let found = try await Self.points(fixture, count: 13, pageSize: 3) {
      for _ in 0..<8 {
        let path = "c/\(Int.random(in: 90..<160, using: &generator))"
        let isDeleted = Int.random(in: 0..<2, using: &generator) == 0
        try await fixture.commit(isDeleted ? delete(path) : set(path, ["n": .integer(1)]))
      }
    }
    #expect(found == expected)
  }
}
