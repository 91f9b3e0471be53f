import HTTPSupport
import NIOCore
import NIOPosix

/// A minimal HTTP/1.1 client.
enum RawHTTP1 {
  /// Returns the server's complete output for one request on a new connection.
  static func get(_ address: ServerAddress) async throws -> String {
    guard case .tcp(let host, let port) = address else { throw CancellationError() }
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connect(host: host, port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    return try await channel.executeThenClose { inbound, outbound in
      try await outbound.write(
        ByteBuffer(string: "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
      )
      var reply = ""
      for try await bytes in inbound { reply += String(buffer: bytes) }
      return reply
    }
  }
}
