import Foundation
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Logging
import NIOCore
import StorageEngine
import Testing
import VectorEmulator
import VectorIndex

@Suite("Pinecone's REST API")
struct VectorServiceTests {
  private let service = VectorService(
    catalog: VectorCatalog(storage: MemoryStorage()),
    logger: Logger(label: "test")
  )

  private struct Reply {
    var status: Int
    var json: NSDictionary
  }

  private func send(
    _ method: HTTPRequest.Method,
    _ path: String,
    _ body: String = ""
  ) async throws -> Reply {
    let head = HTTPRequest(
      method: method,
      scheme: "http",
      authority: "127.0.0.1:5080",
      path: path
    )
    let response = await service.respond(
      to: Request(head: head, body: .whole(ByteBuffer(string: body)))
    )
    let answer = String(buffer: try await response.body.collect(upTo: 1 << 20))
    let json = try JSONSerialization.jsonObject(with: Data((answer.isEmpty ? "{}" : answer).utf8))
    return Reply(status: response.status.code, json: json as? NSDictionary ?? [:])
  }

  private static let spec = #"{"serverless": {"cloud": "aws", "region": "us-east-1"}}"#

  private func createIndex() async throws {
    let reply = try await send(
      .post,
      "/indexes",
      #"{"name": "chat", "dimension": 2, "metric": "cosine", "spec": \#(Self.spec)}"#
    )
    #expect(reply.status == 201)
  }

  private func upsertTwo() async throws {
    let reply = try await send(
      .post,
      "/ix/chat/vectors/upsert",
      #"""
      {"vectors": [{"id": "a", "values": [1, 0], "metadata": {"chat": "c1", "time": 10}},
                   {"id": "b", "values": [0, 1], "metadata": {"chat": "c2", "tags": ["x"]}}]}
      """#
    )
    #expect(reply.json == ["upsertedCount": 2])
  }

  @Test("The control plane describes an index with the host of its data plane")
  func describe() async throws {
    try await createIndex()

    let reply = try await send(.get, "/indexes/chat")
    #expect(reply.status == 200)
    #expect(reply.json["host"] as? String == "http://127.0.0.1:5080/ix/chat")
    #expect(reply.json["dimension"] as? Int == 2)
  }

  @Test("A query returns matches best first, with metadata where asked for")
  func query() async throws {
    try await createIndex()
    try await upsertTwo()

    let reply = try await send(
      .post,
      "/ix/chat/query",
      #"{"vector": [1, 0.1], "topK": 5, "includeMetadata": true}"#
    )
    let matches = try #require(reply.json["matches"] as? [NSDictionary])
    #expect(matches.map { $0["id"] as? String } == ["a", "b"])
    #expect(matches.first?["metadata"] as? NSDictionary == ["chat": "c1", "time": 10])
    #expect(matches.first?["values"] as? [Double] == [])
  }

  @Test("A body of more values than four times the numbers of the largest upsert is refused")
  func tooManyValues() async throws {
    try await createIndex()
    let numbers = String(repeating: "1,", count: 1 << 21) + "1"
    let reply = try await send(.post, "/ix/chat/vectors/upsert", #"{"vectors": [\#(numbers)]}"#)

    #expect(reply.status == 400)
    #expect((reply.json["message"] as? String)?.contains("a value beyond the 2097152") == true)
  }

  @Test("A thousand vectors of 1536 numbers are refused for their size")
  func tooLarge() async throws {
    let made = try await send(
      .post,
      "/indexes",
      #"{"name": "wide", "dimension": 1536, "metric": "cosine", "spec": \#(Self.spec)}"#
    )
    try #require(made.status == 201)
    let numbers = Array(repeating: "1", count: 1536).joined(separator: ",")
    let vectors = (0..<1000).map { #"{"id": "v\#($0)", "values": [\#(numbers)]}"# }
    let reply = try await send(
      .post,
      "/ix/wide/vectors/upsert",
      #"{"vectors": [\#(vectors.joined(separator: ","))]}"#
    )

    #expect(reply.status == 400)
    #expect((reply.json["message"] as? String)?.contains("message length too large") == true)
  }

  @Test(
    "A filter in JSON selects by every operator",
    arguments: [
      (#"{"chat": "c1"}"#, ["a"]), (#"{"chat": {"$ne": "c1"}}"#, ["b"]),
      (#"{"time": {"$gte": 10, "$lt": 11}}"#, ["a"]),
      (#"{"$or": [{"chat": "c1"}, {"tags": {"$in": ["x"]}}]}"#, ["a", "b"]),
      (#"{"$and": [{"chat": {"$in": ["c1", "c2"]}}, {"time": {"$exists": false}}]}"#, ["b"]),
      (#"{"chat": {"$nin": ["c1", "c2"]}}"#, []),
    ]
  )
  func filters(filter: String, expected: [String]) async throws {
    try await createIndex()
    try await upsertTwo()

    let reply = try await send(
      .post,
      "/ix/chat/query",
      #"{"vector": [1, 1], "topK": 5, "filter": \#(filter)}"#
    )
    let matches = try #require(reply.json["matches"] as? [NSDictionary])
    #expect(Set(matches.compactMap { $0["id"] as? String }) == Set(expected))
  }

  @Test("Fetch, list, statistics and deletion see the same records")
  func otherCalls() async throws {
    try await createIndex()
    try await upsertTwo()

    let fetched = try await send(.get, "/ix/chat/vectors/fetch?ids=a&ids=nobody")
    #expect((fetched.json["vectors"] as? NSDictionary)?.allKeys as? [String] == ["a"])
    let page = try await send(.get, "/ix/chat/vectors/list?limit=1")
    #expect((page.json["pagination"] as? NSDictionary) == ["next": "61"])
    _ = try await send(
      .post,
      "/ix/chat/vectors/delete",
      #"{"filter": {"chat": {"$eq": "c1"}}}"#
    )
    let stats = try await send(.post, "/ix/chat/describe_index_stats", "{}")
    #expect(stats.json["totalVectorCount"] as? Int == 1)
    #expect(stats.json["namespaces"] as? NSDictionary == ["": ["vectorCount": 1]])
  }

  @Test(
    "Bad input gets the status and the error body of its plane",
    arguments: [
      (HTTPRequest.Method.post, "/ix/chat/query", #"{"vector": [1], "topK": 1}"#, 400),
      (.post, "/ix/chat/query", #"{"vector": [1, 1], "topK": 0}"#, 400),
      (.post, "/ix/chat/query", #"{"vector": [1, 1], "id": "a", "topK": 1}"#, 400),
      (.post, "/ix/chat/query", #"{"vector": [1, 1], "topK": 1, "filter": {"a": {"$x": 1}}}"#, 400),
      (.post, "/ix/chat/query", #"{"vector": [1, 1], "topK": 1, "filter": {"$not": []}}"#, 400),
      (.post, "/ix/chat/query", "{", 400),
      (
        .post, "/ix/chat/vectors/upsert",
        #"{"vectors": [{"id": "a", "values": [1, 1], "metadata": {"m": {"n": 1}}}]}"#, 400
      ),
      (.post, "/ix/nobody/query", #"{"vector": [1, 1], "topK": 1}"#, 404),
      (.get, "/ix/chat/nothing", "", 404),
    ]
  )
  func dataPlaneErrors(
    method: HTTPRequest.Method,
    path: String,
    body: String,
    status: Int
  ) async throws {
    try await createIndex()

    let reply = try await send(method, path, body)
    #expect(reply.status == status)
    #expect(reply.json["code"] is Int && reply.json["message"] is String)
  }

  @Test(
    "The control plane refuses bad names, taken names and unknown indexes",
    arguments: [
      (
        HTTPRequest.Method.post, "/indexes",
        #"{"name": "Bad_Name", "dimension": 2, "spec": \#(spec)}"#, 400
      ),
      (.post, "/indexes", #"{"name": "ok", "dimension": 0, "spec": \#(spec)}"#, 400),
      (.post, "/indexes", #"{"name": "chat", "dimension": 2, "spec": \#(spec)}"#, 409),
      (.get, "/indexes/nobody", "", 404), (.delete, "/indexes/nobody", "", 404),
    ]
  )
  func controlPlaneErrors(
    method: HTTPRequest.Method,
    path: String,
    body: String,
    status: Int
  ) async throws {
    try await createIndex()

    let reply = try await send(method, path, body)
    #expect(reply.status == status)
    #expect((reply.json["error"] as? NSDictionary)?["code"] is String)
  }
}
