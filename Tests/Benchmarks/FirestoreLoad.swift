import FirestoreProtos
import NIOCore
import NIOPosix
import SwiftProtobuf

/// The measured Firestore calls, identical for every server.
struct FirestoreLoad: Sendable {
  var address: Address
  var project: String
  /// The token of the requests; the administrator's by default.
  var token = "owner"

  /// The number of documents that gets choose from, more than any processor cache holds.
  private static let storedDocuments = 2000
  /// The number of writes in a commit: production's former limit, which every server accepts.
  static let writesInCommit = 500

  private static let replyTimeMax = TimeAmount.seconds(10)

  static let commit = "google.firestore.v1.Firestore/Commit"
  private static let aggregate = "google.firestore.v1.Firestore/RunAggregationQuery"
  static let get = "google.firestore.v1.Firestore/GetDocument"

  /// Creates one document in each commit, as the clients' `create()` does.
  func create(_ load: Load, collection: String) async throws -> Measurement {
    try await load.run {
      connect(Self.commit, on: $0)
    } body: { client, number in
      try encoded(commit([create("\(collection)/c\(client)-\(number)", number)]))
    }
  }

  /// Reads documents that `prepare` has stored.
  func get(_ load: Load) async throws -> Measurement {
    try await load.run {
      connect(Self.get, on: $0)
    } body: { client, number in
      var request = Google_Firestore_V1_GetDocumentRequest()
      // The factor is coprime to the number of documents, so every document is read.
      let index = (number * 1009 + client * 131) % Self.storedDocuments
      request.name = name("read/d\(index)")
      return try encoded(request)
    }
  }

  /// Counts the documents of all collections; no index helps with that.
  func countAll(_ load: Load) async throws -> Measurement {
    try await load.run {
      connect(Self.aggregate, on: $0)
    } body: { _, _ in
      var request = Google_Firestore_V1_RunAggregationQueryRequest()
      request.parent = "\(database)/documents"
      request.structuredAggregationQuery.aggregations = [.with { $0.count = .init() }]
      request.structuredAggregationQuery.structuredQuery.from = [.with { $0.allDescendants = true }]
      return try encoded(request)
    }
  }

  /// Repeats one query over `QueryShape.paths(count)`.
  func ask(_ shape: QueryShape, _ count: Int, _ load: Load) async throws -> Measurement {
    let parent = "\(database)/documents"
    let query = shape.query(count, documents: parent)
    let body: ByteBuffer
    switch shape {
    case .count, .countUpTo, .sum:
      var request = Google_Firestore_V1_RunAggregationQueryRequest()
      request.parent = parent
      request.structuredAggregationQuery.structuredQuery = query
      request.structuredAggregationQuery.aggregations = [
        .with {
          switch shape {
          case .sum: $0.sum.field.fieldPath = "n"
          case .countUpTo: $0.count.upTo = .init(1000)
          default: $0.count = .init()
          }
        }
      ]
      body = try encoded(request)
    default:
      var request = Google_Firestore_V1_RunQueryRequest()
      request.parent = parent
      request.structuredQuery = query
      body = try encoded(request)
    }
    return try await load.run {
      connect(shape.method, on: $0)
    } body: { _, _ in
      body
    }
  }

  /// Stores the documents that `get` reads.
  func prepare() async throws {
    try await createAll((0..<Self.storedDocuments).map { "read/d\($0)" })
  }

  /// Creates documents, many in each commit.
  func createAll(_ paths: [String]) async throws {
    for start in stride(from: 0, to: paths.count, by: Self.writesInCommit) {
      let end = min(start + Self.writesInCommit, paths.count)
      try await commit((start..<end).map { create(paths[$0], $0) })
    }
  }

  /// Creates documents with a text of the given size in a collection, many in each commit.
  func createAll(_ count: Int, in collection: String, textBytes: Int) async throws {
    let text = String(repeating: "The knee is better. ", count: textBytes / 20)
    for start in stride(from: 0, to: count, by: Self.writesInCommit) {
      try await commit(
        (start..<min(start + Self.writesInCommit, count)).map { number in
          create(
            "\(collection)/d\(number)",
            [
              "n": .with { $0.integerValue = Int64(number) },
              "text": .with { $0.stringValue = text },
            ]
          )
        }
      )
    }
  }

  /// Creates one document over a new connection.
  func createOne(_ path: String) async throws {
    try await commit([create(path, 0)])
  }

  /// Creates one document with these fields over a new connection.
  func create(at path: String, _ fields: [FieldName: Google_Firestore_V1_Value]) async throws {
    try await commit([create(path, fields)])
  }

  /// Encodes a commit that creates one document.
  func creation(of path: String, _ number: Int) throws -> ByteBuffer {
    try encoded(commit([create(path, number)]))
  }

  /// Changes one document over a new connection.
  func changeOne(_ path: String) async throws {
    try await commit([change(path)])
  }

  /// Encodes a commit that changes the documents each time it is sent.
  func change(of paths: [String]) throws -> ByteBuffer {
    try encoded(commit(paths.map(change)))
  }

  private func change(_ path: String) -> Google_Firestore_V1_Write {
    var write = Google_Firestore_V1_Write()
    write.update.name = name(path)
    write.updateMask = Google_Firestore_V1_DocumentMask()
    write.updateTransforms = [
      .with {
        $0.fieldPath = "n"
        $0.increment.integerValue = 1
      }
    ]
    return write
  }

  /// Opens a connection for commits.
  func connectForCommits(on loop: any EventLoop) -> EventLoopFuture<any LoadConnection> {
    connect(Self.commit, on: loop)
  }

  func commit(_ writes: [Google_Firestore_V1_Write]) async throws {
    let body = try encoded(commit(writes))
    let loop = Load.eventLoops.next()
    try await connect(Self.commit, on: loop).flatMap { connection in
      let promise = loop.makePromise(of: Void.self)
      promise.failing(at: .now() + Self.replyTimeMax)
      connection.send(body) { reply in
        promise.completeWith(reply.map { _ in })
        connection.close()
      }
      return promise.futureResult
    }.get()
  }

  func commit(_ writes: [Google_Firestore_V1_Write]) -> Google_Firestore_V1_CommitRequest {
    var request = Google_Firestore_V1_CommitRequest()
    request.database = database
    request.writes = writes
    return request
  }

  /// Builds the creation of a document of a chat message's size, which must not exist yet.
  private func create(_ path: String, _ number: Int) -> Google_Firestore_V1_Write {
    create(
      path,
      [
        "n": .with { $0.integerValue = Int64(number) },
        "author": .with { $0.stringValue = "user-\(number % 100)" },
        "text": .with { $0.stringValue = "The knee is better today, I walked for half an hour." },
        "isRead": .with { $0.booleanValue = false },
      ]
    )
  }

  /// Builds the creation of a document that must not exist yet.
  func create(
    _ path: String,
    _ fields: [FieldName: Google_Firestore_V1_Value]
  ) -> Google_Firestore_V1_Write {
    var write = Google_Firestore_V1_Write()
    write.update.name = name(path)
    write.update.fields = fields
    write.currentDocument.exists = false
    return write
  }

  func connect(
    _ method: String,
    on loop: any EventLoop
  ) -> EventLoopFuture<any LoadConnection> {
    GRPCConnection.connect(to: address, method: method, token: token, on: loop)
  }

  func encoded(_ message: some Message) throws -> ByteBuffer {
    let bytes: [UInt8] = try message.serializedBytes()
    return ByteBuffer(bytes: bytes)
  }

  func name(_ path: String) -> String { "\(database)/documents/\(path)" }

  var database: String { "projects/\(project)/databases/(default)" }
}
