import Foundation
import NIOCore
import NIOPosix
import StorageEngine
import VectorIndex

/// Writes and searches of vectors in Hearth's index.
struct VectorLoad: Sendable {
  var set: VectorSet

  /// The results of queries and their durations.
  struct Answers: Sendable {
    var nanoseconds: [Int64]
    /// The rows found by the first run of each query.
    var rows: [[Int]]

    /// The share of the rows in `exact` that was found.
    func recall(_ exact: [[Int]]) -> Double {
      let found = zip(rows, exact).reduce(0) { $0 + Set($1.0).intersection($1.1).count }
      return Double(found) / Double(max(1, exact.reduce(0) { $0 + $1.count }))
    }
  }

  private static let index = "bench"
  /// The number of vectors in a request, as in Pinecone's client; it keeps requests under 2 MB.
  private static let upsertMax = 100
  private static let loadClients = 4
  private static let warmUp = 16
  /// The number of measured queries: four rounds of all.
  private static let measured = 4 * VectorSet.queries

  // MARK: Over HTTP

  /// Creates the index and writes all vectors; returns how long the writes took.
  func load(_ vectors: Address) async throws -> Duration {
    let description = ByteBuffer(
      string: """
        {"name":"\(Self.index)","dimension":\(set.dimension),"metric":"cosine",\
        "spec":{"serverless":{"cloud":"aws","region":"us-east-1"}}}
        """
    )
    _ = try await RequestSeries(address: vectors, path: "/indexes", isCreation: true)
      .run(count: 1) { _ in description }
    let began = ContinuousClock.now
    _ = try await RequestSeries(address: vectors, path: "/ix/\(Self.index)/vectors/upsert")
      .run(count: VectorSet.count / Self.upsertMax, clients: Self.loadClients) { number in
        set.upsert(number * Self.upsertMax..<(number + 1) * Self.upsertMax)
      }
    return ContinuousClock.now - began
  }

  /// Sends the queries one after another.
  func query(_ vectors: Address, isFiltered: Bool) async throws -> Answers {
    let series = RequestSeries(address: vectors, path: "/ix/\(Self.index)/query")
    let body: @Sendable (Int) -> ByteBuffer = { set.query($0, isFiltered: isFiltered) }
    _ = try await series.run(count: Self.warmUp, body: body)
    let replies = try await series.run(count: Self.measured, body: body)
    return Answers(
      nanoseconds: replies.map(\.nanoseconds),
      rows: try replies.prefix(VectorSet.queries).map { try Self.rows($0.body) }
    )
  }

  /// Returns once a query succeeds, which requires that all vectors are loaded.
  func waitUntilReady(_ vectors: Address) async throws {
    let series = RequestSeries(address: vectors, path: "/ix/\(Self.index)/query")
    _ = try await series.run(count: 1) { set.query($0, isFiltered: false) }
  }

  private static func rows(_ body: ByteBuffer) throws -> [Int] {
    struct Reply: Decodable {
      struct Match: Decodable {
        var id: String
      }
      var matches: [Match]
    }
    return try JSONDecoder().decode(Reply.self, from: Data(body.readableBytesView)).matches
      .compactMap { VectorSet.row($0.id) }
  }

  // MARK: In this process

  /// Measures the engine alone, over memory and without a server.
  func queryEngine() async throws -> (all: Answers, filtered: Answers) {
    let catalog = VectorCatalog(storage: MemoryStorage())
    try await catalog.create(
      VectorIndexDescription(name: Self.index, dimension: set.dimension, metric: .cosine)
    )
    for start in stride(from: 0, to: VectorSet.count, by: 1000) {
      let records = (start..<start + 1000).map { row in
        VectorRecord(
          id: VectorSet.id(row),
          values: set.values(row),
          metadata: ["chatId": .string("chat-\(VectorSet.chat(row))")]
        )
      }
      try await catalog.upsert(records, index: Self.index, namespace: "")
    }
    return (
      try await query(catalog, isFiltered: false), try await query(catalog, isFiltered: true)
    )
  }

  private func query(_ catalog: VectorCatalog, isFiltered: Bool) async throws -> Answers {
    var answers = Answers(nanoseconds: [], rows: [])
    for number in -Self.warmUp..<Self.measured {
      let place = (number + VectorSet.queries) % VectorSet.queries
      let values = set.query(place)
      let filter = MetadataFilter.equal("chatId", .string("chat-\(VectorSet.chat(place))"))
      let sent = NIODeadline.now()
      let matches = try await catalog.query(
        values,
        filter: isFiltered ? filter : nil,
        limit: 10,
        index: Self.index,
        namespace: ""
      )
      guard number >= 0 else { continue }
      answers.nanoseconds.append((NIODeadline.now() - sent).nanoseconds)
      if number < VectorSet.queries {
        answers.rows.append(matches.compactMap { VectorSet.row($0.record.id) })
      }
    }
    return answers
  }
}
