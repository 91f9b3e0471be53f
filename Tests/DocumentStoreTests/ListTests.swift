import DocumentModel
import Identity
import StatusCodes
import Testing
import TestSupport

@testable import DocumentStore

@Suite("Lists")
struct ListTests {
  func list(
    _ fixture: StoreFixture,
    _ collectionID: String?,
    parent: String = "",
    pageSize: Int = 2,
    orders: [Query.Order] = [],
    showMissing: Bool = false,
    mask: [FieldPath]? = nil,
    at consistency: ReadConsistency = .latest
  ) async throws -> [[ListedDocument]] {
    var pages: [[ListedDocument]] = []
    var token: String?
    repeat {
      let page = try await fixture.store.listDocuments(
        parent: ResourcePath(slashSeparated: parent),
        collectionID: collectionID,
        database: database,
        pageSize: pageSize,
        pageToken: token,
        orders: orders,
        mask: mask,
        showMissing: showMissing,
        at: consistency,
        auth: .admin
      )
      pages.append(page.documents)
      token = page.nextPageToken
    } while token != nil
    return pages
  }

  func ids(_ pages: [[ListedDocument]]) -> [[String]] { pages.map { $0.map(\.name.id) } }

  @Test("Pages follow one another by name and end without a token", arguments: 1...6)
  func paging(pageSize: Int) async throws {
    let fixture = StoreFixture()
    for id in ["b", "a", "__id9__", "d", "__id10__"] { try await fixture.commit(set("c/\(id)")) }
    try await fixture.commit(set("c/a/s/x"), set("e/f"))

    let pages = try await list(fixture, "c", pageSize: pageSize)

    #expect(ids(pages).flatMap { $0 } == ["__id9__", "__id10__", "a", "b", "d"])
    #expect(pages.dropLast().allSatisfy { $0.count == pageSize })
    #expect(pages.count == (5 + pageSize - 1) / pageSize)
  }

  @Test("An ordered list of a large collection is read in parts, and its page keeps its moment")
  func orderedInParts() async throws {
    let fixture = StoreFixture(configuration: .init(queryCandidatesMax: 10))
    for number in 10..<50 {
      try await fixture.commit(set("c/d\(number)", ["n": .integer(Int64(99 - number))]))
    }
    let begun = fixture.storage.readsBegun
    let pages = try await list(fixture, "c", pageSize: 100, orders: [Query.Order(path("n"))])

    #expect(ids(pages) == [(10..<50).reversed().map { "d\($0)" }])
    #expect(fixture.storage.readsBegun - begun >= 4)
  }

  @Test("An ordered list leaves out what lacks the field and pages through ties")
  func ordered() async throws {
    let fixture = StoreFixture()
    for (id, n) in [("a", 1), ("b", 2), ("c", 2), ("d", 2), ("e", 1)] as [(String, Int64)] {
      try await fixture.commit(set("c/\(id)", ["n": .integer(n), "m": .null]))
    }
    try await fixture.commit(set("c/f", ["x": .null]))

    let pages = try await list(
      fixture,
      "c",
      orders: [Query.Order(path("n"), descending: true)],
      mask: [path("m")]
    )

    #expect(ids(pages) == [["d", "c"], ["b", "e"], ["a"]])
    #expect(pages[0][0].document?.fields == ["m": .null])
  }

  @Test("Missing documents with something below them are listed on demand", arguments: 1...5)
  func missing(pageSize: Int) async throws {
    let fixture = StoreFixture()
    try await fixture.commit(
      set("p/a/s/1"),
      set("p/a/s/2"),
      set("p/b"),
      set("p/b/s/1"),
      set("p/c/s/t/u/v"),
      set("p/d"),
      set("p/e/s/1"),
      set("q/z/s/1")
    )

    let pages = try await list(fixture, "p", pageSize: pageSize, showMissing: true)

    #expect(ids(pages).flatMap { $0 } == ["a", "b", "c", "d", "e"])
    #expect(pages.flatMap { $0 }.map { $0.document == nil } == [true, false, true, false, true])
    #expect(ids(try await list(fixture, "p", pageSize: 9)) == [["b", "d"]])
  }

  @Test("Missing documents are those of the time that is read")
  func missingInThePast() async throws {
    let fixture = StoreFixture()
    let start = try await fixture.commit(set("p/a/s/1"), set("p/b"), set("p/b/s/1")).commitTime
    let middle = try await fixture.commit(delete("p/a/s/1"), delete("p/b"), set("p/c/s/1"))
      .commitTime
    try await fixture.commit(set("p/a"), delete("p/c/s/1"))

    func missing(_ time: Timestamp) async throws -> [String] {
      try await list(fixture, "p", pageSize: 9, showMissing: true, at: .readTime(time))
        .flatMap { $0 }.map { $0.name.id + ($0.document == nil ? "?" : "") }
    }
    #expect(try await missing(start) == ["a?", "b"])
    #expect(try await missing(middle) == ["b?", "c?"])
    let latest = try await list(fixture, "p", pageSize: 9, showMissing: true)
    #expect(latest.flatMap { $0 }.map(\.name.id) == ["a", "b"])
  }

  @Test("Without a collection id all collections of a document are listed", arguments: 1...7)
  func allCollections(pageSize: Int) async throws {
    let fixture = StoreFixture()
    try await fixture.commit(
      set("p/x/a/1"),
      set("p/x/a/2"),
      set("p/x/b/3/c/9"),
      set("p/x/d/4"),
      set("p/x/d/5"),
      set("p/y/a/8")
    )

    let pages = try await list(fixture, nil, parent: "p/x", pageSize: pageSize)

    #expect(ids(pages).flatMap { $0 } == ["1", "2", "4", "5"])
  }

  @Test("Refused: a foreign token, an order with missing documents, an order without a collection")
  func refusals() async throws {
    let fixture = StoreFixture()
    try await fixture.commit(set("c/a"), set("c/b"), set("e/a"))
    func list(
      _ collectionID: String?,
      token: String? = nil,
      orders: [Query.Order] = [],
      showMissing: Bool = false
    ) async throws -> String? {
      try await fixture.store.listDocuments(
        parent: ResourcePath(),
        collectionID: collectionID,
        database: database,
        pageSize: 1,
        pageToken: token,
        orders: orders,
        mask: nil,
        showMissing: showMissing,
        at: .latest,
        auth: .admin
      ).nextPageToken
    }
    let token = try #require(try await list("c"))
    #expect(try await list("c", token: token) == nil)
    await #expect(
      throws: StatusError.invalidArgument("collection id must be set when show_missing is true")
    ) { try await list(nil, showMissing: true) }
    for bad in [token + "00", String(token.dropLast(2)), "zz", "0"] {
      await #expect(throws: StatusError.invalidArgument("invalid page token")) {
        try await list("c", token: bad)
      }
    }
    await #expect(throws: StatusError.invalidArgument("Invalid page token.")) {
      try await list("e", token: token)
    }
    await #expect(
      throws: StatusError.invalidArgument("cannot specify an order when show_missing is true")
    ) { try await list("c", orders: [Query.Order(path("n"))], showMissing: true) }
    await #expect(
      throws: StatusError.invalidArgument(
        "kind is required for all orders except __key__ ascending"
      )
    ) { try await list(nil, orders: [Query.Order(path("n"))]) }
    #expect(await code { try await list("__x__") } == .invalidArgument)
  }

  @Test("Collection ids are those with a document at any depth, in order, in pages")
  func collectionIDs() async throws {
    let fixture = StoreFixture()
    try await fixture.commit(
      set("a/1/s/1"),
      set("b/1"),
      set("c/1/s/1/t/1"),
      set("d/1"),
      set("e/1/s/2"),
      set("a/1/r/1")
    )
    func ids(
      _ parent: String,
      at consistency: ReadConsistency = .latest
    ) async throws -> [String] {
      var ids: [String] = []
      var token: String?
      repeat {
        let page = try await fixture.store.listCollectionIDs(
          parent: ResourcePath(slashSeparated: parent),
          database: database,
          pageSize: 2,
          pageToken: token,
          at: consistency,
          auth: .admin
        )
        #expect(page.collectionIDs.count <= 2)
        ids += page.collectionIDs
        token = page.nextPageToken
      } while token != nil
      return ids
    }
    #expect(try await ids("") == ["a", "b", "c", "d", "e"])
    #expect(try await ids("a/1") == ["r", "s"])
    #expect(try await ids("c/1/s/1") == ["t"])
    #expect(try await ids("b/1") == [])

    let before = try await fixture.commit(set("f/1")).commitTime
    try await fixture.commit(delete("b/1"), delete("f/1"), set("g/1"), delete("c/1/s/1/t/1"))
    #expect(try await ids("") == ["a", "d", "e", "g"])
    #expect(try await ids("", at: .readTime(before)) == ["a", "b", "c", "d", "e", "f"])
    #expect(await code { try await ids("a") } == .invalidArgument)
  }
}
