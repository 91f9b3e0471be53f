import NIOCore
import NIOHTTP1
import NIOPosix

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The least an HTTP server on NIO does: the mark that callables are measured against.
///
/// It runs in a process of its own, as Hearth does, with as many threads.
enum EchoServer {
  /// Serves until the process is ended; prints its port.
  static func run() async throws {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 256)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.configureHTTPServerPipeline()
          try channel.pipeline.syncOperations.addHandler(EchoHandler())
        }
      }
      .bind(host: "127.0.0.1", port: 0)
      .get()
    print(channel.localAddress?.port ?? 0)
    // A pipe's reader waits for the line.
    fflush(nil)
    try await channel.closeFuture.get()
  }
}

/// Answers each request with its body.
private final class EchoHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private var body = ByteBuffer()

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head:
      body.clear()
    case .body(var bytes):
      body.writeBuffer(&bytes)
    case .end:
      var head = HTTPResponseHead(version: .http1_1, status: .ok)
      head.headers.add(name: "content-type", value: "application/json")
      head.headers.add(name: "content-length", value: String(body.readableBytes))
      context.write(wrapOutboundOut(.head(head)), promise: nil)
      context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
  }
}
