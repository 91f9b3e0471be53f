package import NIOCore
package import NIOHPACK
package import SwiftProtobuf

/// What a handler may know of its call beside the request.
package struct GRPCContext: Sendable {
  /// `/package.Service/Method`.
  package let path: String
  /// All headers of the call, pseudo-headers too; `metadata.first(name:)` takes lower case.
  package let metadata: HPACKHeaders
  /// When the client stops waiting and the handler's task is cancelled, or nil for never.
  package let deadline: ContinuousClock.Instant?
  package let remoteAddress: SocketAddress?

  /// A context; tests of handlers make their own.
  package init(
    path: String,
    metadata: HPACKHeaders = [:],
    deadline: ContinuousClock.Instant? = nil,
    remoteAddress: SocketAddress? = nil
  ) {
    self.path = path
    self.metadata = metadata
    self.deadline = deadline
    self.remoteAddress = remoteAddress
  }
}

/// A gRPC service: its methods and the functions that answer them.
///
/// A handler runs in a task of its call's own, which is cancelled when the client resets the call,
/// its connection closes or its deadline passes. What it throws becomes the call's status: a
/// `StatusConvertible` as it says, anything else `INTERNAL`.
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
    _ handler: @escaping @Sendable (Request, GRPCContext) async throws -> Reply
  ) {
    methods[method] = .unary { bytes, context in
      try GRPCFraming.frame(try await handler(try GRPCFraming.message(bytes), context))
    }
  }

  /// Adds a method with one request and a stream of replies, which ends when the handler returns.
  package mutating func serverStreaming<Request: Message, Reply: Message>(
    _ method: String,
    _ handler:
      @escaping @Sendable (Request, GRPCResponseStream<Reply>, GRPCContext) async throws -> Void
  ) {
    methods[method] = .serverStreaming { bytes, writer, context in
      try await handler(try GRPCFraming.message(bytes), GRPCResponseStream(writer), context)
    }
  }

  /// Adds a method whose two streams run side by side.
  ///
  /// The handler may return before the requests have ended; the rest of them is not read.
  package mutating func bidirectional<Request: Message, Reply: Message>(
    _ method: String,
    _ handler:
      @escaping @Sendable (
        GRPCRequestStream<Request>, GRPCResponseStream<Reply>, GRPCContext
      ) async throws -> Void
  ) {
    methods[method] = .bidirectional { requests, writer, context in
      try await handler(GRPCRequestStream(requests), GRPCResponseStream(writer), context)
    }
  }
}

/// A method with its message types erased.
enum GRPCMethod: Sendable {
  /// Takes the request's bytes and returns the framed reply.
  case unary(@Sendable (ByteBuffer, GRPCContext) async throws -> ByteBuffer)
  case serverStreaming(@Sendable (ByteBuffer, GRPCStreamWriter, GRPCContext) async throws -> Void)
  case bidirectional(
    @Sendable (GRPCInboundMessages, GRPCStreamWriter, GRPCContext) async throws -> Void
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
  private let writer: GRPCStreamWriter

  init(_ writer: GRPCStreamWriter) {
    self.writer = writer
  }

  /// Queues a reply, then waits until the client has room for more.
  ///
  /// Throws `CancellationError` when the call is over or the task is cancelled.
  package func send(_ reply: Reply) async throws {
    try await writer.send(try GRPCFraming.frame(reply))
  }
}

/// The requests of a bidirectional call, in order; at most one task may iterate, once.
///
/// A client that sends faster than the handler reads is held back. Ends when the client has
/// finished sending; throws `INVALID_ARGUMENT` for bytes that are not a message.
package struct GRPCRequestStream<Request: Message>: AsyncSequence, Sendable {
  package typealias Element = Request
  private let messages: GRPCInboundMessages

  init(_ messages: GRPCInboundMessages) {
    self.messages = messages
  }

  /// The iterator; make only one.
  package func makeAsyncIterator() -> Iterator {
    Iterator(messages: messages.makeAsyncIterator())
  }

  /// Decodes one request after the other.
  package struct Iterator: AsyncIteratorProtocol {
    fileprivate var messages: GRPCInboundMessages.AsyncIterator

    /// The next request, or nil after the last.
    package mutating func next() async throws -> Request? {
      guard let bytes = try await messages.next() else { return nil }
      return try GRPCFraming.message(bytes)
    }
  }
}
