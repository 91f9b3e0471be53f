import HTTPMessages
import DocumentStore
import FirestoreProtos
import FirestoreWire
package import HTTP2Server
import HTTPTypes
import Identity
import InvocationContext
import NIOHPACK
import SwiftProtobuf

extension FirestoreService {
  /// The gRPC service, with one method for each handler.
  package var grpcService: GRPCService {
    var service = GRPCService(name: "google.firestore.v1.Firestore")
    service.unary(encoded: "GetDocument", on: .connection) {
      (request: Google_Firestore_V1_GetDocumentRequest, context) in
      try await self.getDocument(request, auth: try self.authenticate(context)).bytes
    }
    unary("ListDocuments", of: &service, listDocuments)
    unary("CreateDocument", of: &service, on: .connection, createDocument)
    unary("UpdateDocument", of: &service, updateDocument)
    unary("DeleteDocument", of: &service, deleteDocument)
    unary("Commit", of: &service, on: .connection, commit)
    unary("BatchWrite", of: &service, batchWrite)
    unary("BeginTransaction", of: &service, beginTransaction)
    unary("Rollback", of: &service, rollback)
    unary("ListCollectionIds", of: &service, listCollectionIDs)
    streaming("BatchGetDocuments", of: &service, on: .connection, batchGetDocuments) {
      (stream: GRPCResponseStream<LookUpReply.Proto>, replies) in
      try await stream.send(encoded: replies.lazy.map(\.bytes))
    }
    service.serverStreaming("RunQuery") {
      (
        request: Google_Firestore_V1_RunQueryRequest,
        stream: GRPCResponseStream<QueryReply.Proto>,
        context
      ) in
      let auth = try self.authenticate(context)
      let count = { (bytes: Int) in
        try stream.hold(bytes > Self.uncountedBytesMax ? bytes : 0)
      }
      try await self.runQuery(request, auth: auth, counting: count) { replies in
        try count(replies.heldBytes)
        try await stream.send(encoded: replies.lazy.map(\.bytes))
        try count(replies.keptBytes)
      }
    }
    streaming("RunAggregationQuery", of: &service, runAggregationQuery) {
      (stream: GRPCResponseStream<Google_Firestore_V1_RunAggregationQueryResponse>, replies) in
      try await stream.send(contentsOf: replies)
    }
    unary("PartitionQuery", of: &service, partitionQuery)
    unary("ExecutePipeline", of: &service) {
      (_: Google_Protobuf_Empty, _) -> Google_Protobuf_Empty in
      throw Self.pipelinesUnimplemented
    }
    service.bidirectional("Listen") {
      (
        requests: GRPCRequestStream<Google_Firestore_V1_ListenRequest>,
        replies: GRPCResponseStream<ListenReply.Proto>,
        context
      ) in
      try await self.listen(
        to: requests.next,
        resourcePrefix: context.metadata.first(name: Self.resourcePrefixHeader),
        auth: try self.authenticate(context),
        client: context.connection.map(ListenClient.connection)
      ) {
        try await replies.send(encoded: $0.lazy.map(\.bytes))
      }
    }
    service.bidirectional("Write") {
      (
        requests: GRPCRequestStream<Google_Firestore_V1_WriteRequest>,
        replies: GRPCResponseStream<Google_Firestore_V1_WriteResponse>,
        context
      ) in
      let auth = try self.authenticate(context)
      try await self.write(
        from: requests.next,
        resourcePrefix: context.metadata.first(name: Self.resourcePrefixHeader),
        auth: auth,
        client: context.connection.map(ListenClient.connection)
      ) {
        try await replies.send($0)
      }
    }
    return service
  }

  /// Counts the memory of responses while they are sent, unless it is small.
  private static func holding<Reply>(
    _ bytes: Int,
    of stream: GRPCResponseStream<Reply>,
    _ send: () async throws -> Void
  ) async throws {
    guard bytes > uncountedBytesMax else { return try await send() }
    try stream.hold(bytes)
    try await send()
    try stream.hold(0)
  }

  /// The size up to which a stream's responses are not counted: a few times its queue.
  private static let uncountedBytesMax = 256 << 10

  private static let resourcePrefixHeader = "google-cloud-resource-prefix"

  private func unary<Request: Message, Reply: Message>(
    _ method: String,
    of service: inout GRPCService,
    on place: GRPCPlace = .pool,
    _ handler: @escaping @Sendable (Request, AuthContext) async throws -> Reply
  ) {
    service.unary(method, on: place) { (request: Request, context) in
      let auth = try self.authenticate(context)
      return try await EventCause.with(
        header: CauseSignature.verified(context.metadata.first(name: EventCause.headerName)),
        traceParent: context.metadata.first(name: HTTPField.Name.traceParent.rawName)
      ) {
        try await handler(request, auth)
      }
    }
  }

  private func streaming<Request: Message, Reply, Proto: Message>(
    _ method: String,
    of service: inout GRPCService,
    on place: GRPCPlace = .pool,
    _ handler: @escaping @Sendable (Request, AuthContext) async throws -> StreamReplies<Reply>,
    sendingBy send:
      @escaping @Sendable (GRPCResponseStream<Proto>, StreamReplies<Reply>) async throws -> Void
  ) {
    service.serverStreaming(method, on: place) { (request: Request, stream, context) in
      let replies = try await handler(request, try self.authenticate(context))
      do {
        try await Self.holding(replies.heldBytes, of: stream) { try await send(stream, replies) }
      } catch {
        if let id = replies.newTransaction { self.store.abandon(id) }
        throw error
      }
    }
  }

  /// Returns the caller's identity according to a call's metadata.
  ///
  /// Server libraries send `Bearer owner` to an emulator. Mobile libraries send no token while no
  /// user is signed in, but their other headers identify them. A call with neither comes from a
  /// tool, which bypasses the rules as with the official emulator.
  private func authenticate(_ context: GRPCContext) throws -> AuthContext {
    if let authorization = context.metadata.first(name: "authorization") {
      return try authenticate(authorization: authorization)
    }
    let client = context.metadata.first(name: "x-goog-api-client") ?? ""
    let isMobile =
      context.metadata.contains(name: "x-firebase-gmpid") || client.contains("gl-objc")
      || client.contains("gl-cpp") || client.contains("gl-js") || client.contains("fire/")
    return isMobile ? .unauthenticated : .admin
  }
}
