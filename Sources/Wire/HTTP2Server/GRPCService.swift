import HTTPSupport
package import NIOCore
package import NIOHPACK
package import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The properties of a call that are available to its handler besides the request.
package struct GRPCContext: Sendable {
  /// The method's path, `/package.Service/Method`.
  package let path: String
  /// All headers of the call, including pseudo-headers; `metadata.first(name:)` takes lower case.
  package let metadata: HPACKHeaders
  /// The time at which the client stops waiting and the handler's task is cancelled; nil for none.
  package let deadline: ContinuousClock.Instant?
  package let remoteAddress: SocketAddress?
  /// The connection that carries the call, valid while it is open; nil in tests of handlers.
  package let connection: ObjectIdentifier?

  /// Creates a context; tests of handlers create their own.
  package init(
    path: String,
    metadata: HPACKHeaders = [:],
    deadline: ContinuousClock.Instant? = nil,
    remoteAddress: SocketAddress? = nil,
    connection: ObjectIdentifier? = nil
  ) {
    self.path = path
    self.metadata = metadata
    self.deadline = deadline
    self.remoteAddress = remoteAddress
    self.connection = connection
  }

  /// Returns the values of a header whose name ends in `-bin`, without those that are not Base64.
  package func binaryMetadata(_ name: String) -> [[UInt8]] {
    metadata[canonicalForm: name].compactMap { value in
      let digits = value.prefix { $0 != "=" }
      let padding = String(repeating: "=", count: (4 - digits.utf8.count % 4) % 4)
      return Data(base64Encoded: digits + padding).map(Array.init)
    }
  }
}

/// A gRPC service: its methods and their handlers.
///
/// A handler runs in the call's own task. The task is cancelled when the client resets the call,
/// the connection closes or the deadline passes. A thrown error becomes the call's status: a
/// `StatusConvertible` determines its own, any other error becomes `INTERNAL`.
package struct GRPCService: Sendable {
  /// The full name, such as `google.firestore.v1.Firestore`.
  package let name: String
  private(set) var methods: [String: GRPCMethod] = [:]

  package init(name: String) {
    self.name = name
  }

  /// Adds a method with one request and one reply.
  package mutating func unary<Request: Message, Reply: Message>(
    _ method: String,
    on place: GRPCPlace = .pool,
    _ handler: @escaping @Sendable (Request, GRPCContext) async throws -> Reply
  ) {
    methods[method] = .unary(place) { message, codec, context in
      try codec.frame(try await handler(try codec.request(message), context))
    }
  }

  /// Adds a method with one request and one reply that the handler returns as encoded bytes.
  package mutating func unary<Request: Message>(
    encoded method: String,
    on place: GRPCPlace = .pool,
    _ handler: @escaping @Sendable (Request, GRPCContext) async throws -> [UInt8]
  ) {
    methods[method] = .unary(place) { message, codec, context in
      try codec.frame(encoded: try await handler(try codec.request(message), context))
    }
  }

  /// Adds a method with one request and a stream of replies, which ends when the handler returns.
  package mutating func serverStreaming<Request: Message, Reply: Message>(
    _ method: String,
    on place: GRPCPlace = .pool,
    _ handler:
      @escaping @Sendable (Request, GRPCResponseStream<Reply>, GRPCContext) async throws -> Void
  ) {
    methods[method] = .serverStreaming(place) { message, codec, writer, context in
      let replies = GRPCResponseStream<Reply>(writer: writer, codec: codec)
      try await handler(try codec.request(message), replies, context)
    }
  }

  /// Adds a method whose request and reply streams run concurrently.
  ///
  /// The handler may return before the requests have ended; the remaining requests are not read.
  package mutating func bidirectional<Request: Message, Reply: Message>(
    _ method: String,
    _ handler:
      @escaping @Sendable (
        GRPCRequestStream<Request>, GRPCResponseStream<Reply>, GRPCContext
      ) async throws -> Void
  ) {
    methods[method] = .bidirectional { requests, codec, writer, context in
      try await handler(
        GRPCRequestStream(queue: requests, codec: codec),
        GRPCResponseStream(writer: writer, codec: codec),
        context
      )
    }
  }
}

/// The stream of replies of a streaming call.
package struct GRPCResponseStream<Reply: Message>: Sendable {
  let writer: GRPCStreamWriter
  let codec: GRPCCodec

  /// Sets the number of bytes that the handler holds for replies it has not queued yet.
  ///
  /// They count toward the memory of everything that slow clients have not read. Throws
  /// `RESOURCE_EXHAUSTED` if there is not enough. If the client has stalled and other transfers
  /// need the memory, the call ends with the same status.
  package func hold(_ bytes: Int) throws { try writer.hold(bytes) }

  /// Queues a reply, then waits until the client has room for more.
  ///
  /// Throws `CancellationError` if the call is over or the task is cancelled.
  package func send(_ reply: Reply) async throws {
    try await writer.send(try codec.frame(reply))
  }

  /// Queues replies that are already available, in batches, and waits as `send` does.
  ///
  /// Throws as `send` does; some replies may already have been sent.
  package func send(contentsOf replies: some Sequence<Reply>) async throws {
    try await send(replies) { try codec.frame($0) }
  }

  /// Queues replies given as encoded bytes, as `send(contentsOf:)` does.
  package func send(encoded replies: some Sequence<[UInt8]>) async throws {
    try await send(replies) { try codec.frame(encoded: $0) }
  }

  private func send<Replies: Sequence>(
    _ replies: Replies,
    framedBy makeFrame: (Replies.Element) throws -> ByteBuffer
  ) async throws {
    var batch = ByteBuffer()
    for reply in replies {
      let frame = try makeFrame(reply)
      if batch.readableBytes == 0 { batch = frame } else { batch.writeImmutableBuffer(frame) }
      guard batch.readableBytes >= Self.batchBytes else { continue }
      try await writer.send(batch)
      batch = ByteBuffer()
    }
    if batch.readableBytes > 0 { try await writer.send(batch) }
  }

  /// The size of an HTTP/2 frame, unless the client allows larger ones.
  private static var batchBytes: Int { 16 << 10 }
}

/// The requests of a bidirectional call, in order, for one iteration by one task.
///
/// A client that sends faster than the handler reads is held back. The stream ends when the client
/// has finished sending. It throws `INVALID_ARGUMENT` for bytes that are not a valid message.
package struct GRPCRequestStream<Request: Message>: AsyncSequence, Sendable {
  package typealias Element = Request
  let queue: InboundQueue<GRPCMessage>
  let codec: GRPCCodec

  /// Returns the next request, or nil after the last one, for callers that do not iterate.
  package func next() async throws -> Request? {
    var iterator = makeAsyncIterator()
    return try await iterator.next()
  }

  /// Returns the iterator; create only one.
  package func makeAsyncIterator() -> Iterator {
    Iterator(queue: queue, codec: codec)
  }

  /// An iterator that decodes one request at a time.
  package struct Iterator: AsyncIteratorProtocol {
    fileprivate let queue: InboundQueue<GRPCMessage>
    fileprivate let codec: GRPCCodec

    /// Returns the next request; nil after the last one.
    package mutating func next() async throws -> Request? {
      guard let message = try await queue.next() else { return nil }
      return try codec.request(message)
    }
  }
}
