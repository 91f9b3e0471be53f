import HTTPSupport
import NIOCore
import NIOPosix

@testable import HTTP2Server

/// A client on a real connection that writes and reads individual frames.
struct RawHTTP2 {
  static let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

  private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
  private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  private var unread = ByteBuffer()

  private init(
    inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator,
    outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  ) {
    self.inbound = inbound
    self.outbound = outbound
  }

  /// Connects, runs `body` and closes the connection.
  static func with<Result: Sendable>(
    _ address: ServerAddress,
    _ body: (inout RawHTTP2) async throws -> Result
  ) async throws -> Result {
    guard case .tcp(let host, let port) = address else { throw CancellationError() }
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connect(host: host, port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    return try await channel.executeThenClose { inbound, outbound in
      var client = RawHTTP2(inbound: inbound.makeAsyncIterator(), outbound: outbound)
      return try await body(&client)
    }
  }

  /// Sends the bytes that `write` produces.
  func send(_ write: (inout ByteBuffer) throws -> Void) async throws {
    var bytes = ByteBuffer()
    try write(&bytes)
    try await outbound.write(bytes)
  }

  /// Returns the server's next frame; nil once the server has closed the connection.
  mutating func next() async throws -> Peer.Frame? {
    while true {
      if let frame = unread.readFrame() { return frame }
      guard let bytes = try await inbound.next() else { return nil }
      unread.discardReadBytes()
      unread.writeImmutableBuffer(bytes)
    }
  }
}

extension ByteBuffer {
  /// The header block of a call.
  static func callHead(_ path: String, _ more: [(String, String)] = []) -> ByteBuffer {
    // `:method: POST` and `:scheme: http` in the static table.
    var block = ByteBuffer(bytes: [0x83, 0x86])
    block.writeHeaderField(":path", path)
    block.writeHeaderField("te", "trailers")
    block.writeHeaderField("content-type", "application/grpc")
    for (name, value) in more { block.writeHeaderField(name, value) }
    return block
  }
}
