import HTTPSupport
import NIOCore
import NIOPosix

/// The least of an HTTP/1.1 client.
enum RawHTTP1 {
  /// Everything that the server answers to one request on a connection of its own.
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
