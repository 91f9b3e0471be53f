import LibC
import NIOCore
import NIOHTTP1
import NIOPosix

/// A minimal HTTP server on NIO, the baseline for callables.
///
/// It runs in its own process, as Hearth does, and with as many threads.
enum EchoServer {
  /// Prints its port and serves until the process is ended.
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
    // The parent waits for this line on a pipe.
    fflush(nil)
    try await channel.closeFuture.get()
  }
}

/// Responds to each request with its body.
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
