import HTTPSupport
package import NIOCore
package import NIOHPACK
package import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a handler may know of its call besides the request.
package struct GRPCContext: Sendable {
  /// The method's path, `/package.Service/Method`.
  package let path: String
  /// All headers of the call, pseudo-headers too; `metadata.first(name:)` takes lower case.
  package let metadata: HPACKHeaders
  /// When the client stops waiting and the handler's task is cancelled, or nil for never.
  package let deadline: ContinuousClock.Instant?
  package let remoteAddress: SocketAddress?
  /// The connection that carries the call, while it is open; nil in tests of handlers.
  package let connection: ObjectIdentifier?

  /// A context; tests of handlers make their own.
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

  /// The values of a header whose name ends in `-bin`; values that are not Base64 are left out.
  package func binaryMetadata(_ name: String) -> [[UInt8]] {
    metadata[canonicalForm: name].compactMap { value in
      let digits = value.prefix { $0 != "=" }
      let padding = String(repeating: "=", count: (4 - digits.utf8.count % 4) % 4)
      return Data(base64Encoded: digits + padding).map(Array.init)
    }
  }
}

/// A gRPC service: its methods and the functions that answer them.
///
/// A handler runs in its call's own task, which is cancelled when the client resets the call, its
/// connection closes or its deadline passes. An error that it throws becomes the call's status: a
/// `StatusConvertible` as it says, any other error `INTERNAL`.
package struct GRPCService: Sendable {
  /// The full name, such as `google.firestore.v1.Firestore`.
  package let name: String
  private(set) var methods: [String: GRPCMethod] = [:]

  /// A service without methods.
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

  /// Adds a method with one request and one reply, which the handler gives as its message's bytes.
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

  /// Adds a method whose two streams run side by side.
  ///
  /// The handler may return before the requests have ended; the remaining ones are not read.
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

/// Where a handler runs between its suspensions.
package enum GRPCPlace: Sendable {
  /// The handler runs on the shared threads of all tasks.
  case pool
  /// The handler runs on the connection's own thread, which saves a call two changes of threads.
  ///
  /// For handlers that need microseconds for a short request, because the other calls of the
  /// thread's connections wait meanwhile. Long requests go to the pool.
  case connection
}

/// A method with its message types erased.
enum GRPCMethod: Sendable {
  typealias Requests = InboundQueue<GRPCMessage>

  /// Takes the request and returns the framed reply.
  case unary(
    GRPCPlace,
    @Sendable (GRPCMessage, GRPCCodec, GRPCContext) async throws -> ByteBuffer
  )
  case serverStreaming(
    GRPCPlace,
    @Sendable (GRPCMessage, GRPCCodec, GRPCStreamWriter, GRPCContext) async throws -> Void
  )
  case bidirectional(
    @Sendable (Requests, GRPCCodec, GRPCStreamWriter, GRPCContext) async throws -> Void
  )

  /// Whether the call starts with its first request rather than with its head.
  var takesOneRequest: Bool {
    switch self {
    case .unary, .serverStreaming: true
    case .bidirectional: false
    }
  }
}

/// Sends the replies of a streaming call.
package struct GRPCResponseStream<Reply: Message>: Sendable {
  let writer: GRPCStreamWriter
  let codec: GRPCCodec

  /// Holds exactly so many bytes, from now on, which the handler keeps for replies that it has not
  /// queued yet.
  ///
  /// They are counted with what all slow clients have not read. Throws `RESOURCE_EXHAUSTED` when there
  /// are too few; a call whose client has stalled ends with it when others need its bytes.
  package func hold(_ bytes: Int) throws { try writer.hold(bytes) }

  /// Queues a reply, then waits until the client has room for more.
  ///
  /// Throws `CancellationError` when the call is over or the task is cancelled.
  package func send(_ reply: Reply) async throws {
    try await writer.send(try codec.frame(reply))
  }

  /// Queues replies that are all there, several at a time, and waits as `send` does.
  ///
  /// Throws as `send` does; some replies may then have been sent.
  package func send(contentsOf replies: some Sequence<Reply>) async throws {
    try await send(replies) { try codec.frame($0) }
  }

  /// Queues replies given as the bytes of their messages, as `send(contentsOf:)` does.
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

  /// The size of an HTTP/2 frame, unless the client allows a larger one.
  private static var batchBytes: Int { 16 << 10 }
}

/// The requests of a bidirectional call, in order; at most one task may iterate, once.
///
/// A client that sends faster than the handler reads is held back. Ends when the client has
/// finished sending; throws `INVALID_ARGUMENT` for bytes that are not a message.
package struct GRPCRequestStream<Request: Message>: AsyncSequence, Sendable {
  package typealias Element = Request
  let queue: InboundQueue<GRPCMessage>
  let codec: GRPCCodec

  /// The next request, or nil after the last; for who does not iterate.
  package func next() async throws -> Request? {
    var iterator = makeAsyncIterator()
    return try await iterator.next()
  }

  /// The iterator; make only one.
  package func makeAsyncIterator() -> Iterator {
    Iterator(queue: queue, codec: codec)
  }

  /// Decodes one request after the other.
  package struct Iterator: AsyncIteratorProtocol {
    fileprivate let queue: InboundQueue<GRPCMessage>
    fileprivate let codec: GRPCCodec

    /// The next request, or nil after the last.
    package mutating func next() async throws -> Request? {
      guard let message = try await queue.next() else { return nil }
      return try codec.request(message)
    }
  }
}
