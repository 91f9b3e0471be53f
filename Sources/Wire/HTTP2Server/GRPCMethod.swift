import HTTPSupport
import NIOCore

/// The threads on which a handler runs between its suspensions.
package enum GRPCPlace: Sendable {
  /// The handler runs on the threads shared by all tasks.
  case pool
  /// The handler runs on the connection's own thread, which saves two thread switches per call.
  ///
  /// It is meant for handlers that need microseconds for a short request, because the other calls
  /// of the thread's connections wait in the meantime. Long requests run on the pool.
  case connection
}

/// A method with erased message types.
enum GRPCMethod: Sendable {
  typealias Requests = InboundQueue<GRPCMessage>

  /// Handles the request and returns the framed reply.
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

  /// True if the handler starts with the first request rather than with the call's head.
  var takesOneRequest: Bool {
    switch self {
    case .unary, .serverStreaming: true
    case .bidirectional: false
    }
  }
}
